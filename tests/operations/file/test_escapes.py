"""No request reads, writes or reveals anything outside the scope's root, whatever its path or the links inside."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from support.road import FOLDER_CAPABILITIES, Road, folder_scope

pytestmark = pytest.mark.anyio

CANARY = "CANARY-OUT-7f3a"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder beside the root that nothing may reach."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "secret.txt").write_text(CANARY)
    (folder / "f.txt").write_text("old\n")
    return folder


def unchanged(out: Path) -> bool:
    return sorted(path.name for path in out.iterdir()) == ["f.txt", "secret.txt"] and (
        (out / "secret.txt").read_text(),
        (out / "f.txt").read_text(),
    ) == (CANARY, "old\n")


REFUSED_TARGETS = [
    ("../out/secret.txt", {"path_out_of_scope"}),
    ("..", {"path_out_of_scope"}),
    ("a/b/../../../out/secret.txt", {"path_out_of_scope"}),
    ("./../out/secret.txt", {"path_out_of_scope"}),
    ("a/../..//out/secret.txt", {"path_out_of_scope"}),
    ("/etc/passwd", {"path_out_of_scope"}),
    ("//etc/passwd", {"path_out_of_scope"}),
    ("%2e%2e/out/secret.txt", {"invalid_request"}),
    ("..%2fout%2fsecret.txt", {"invalid_request"}),
    ("%252e%252e%252fout/secret.txt", {"invalid_request"}),
    ("a.txt\0.png", {"invalid_request"}),
    ("~/.ssh/id_rsa", {"permission_denied", "not_found"}),
    ("~root/x", {"not_found"}),
    ("$HOME/x", {"not_found"}),
    ("\uff0e\uff0e\uff0fout\uff0fsecret.txt", {"not_found"}),
    ("..\u2215out\u2215secret.txt", {"not_found"}),
    ("..\\out\\secret.txt", {"not_found"}),
    ("file:///etc/passwd", {"not_found"}),
    ("\\\\?\\C:\\Windows\\win.ini", {"path_out_of_scope"}),
    ("C:\\Windows\\win.ini", {"path_out_of_scope"}),
    ("x" * 300, {"invalid_request"}),
    ("x/" * 3000, {"invalid_request"}),
    ("a\nb", {"not_found"}),
    ("/proc/self/environ", {"path_out_of_scope"}),
]


@pytest.mark.parametrize(("target", "codes"), REFUSED_TARGETS)
@pytest.mark.parametrize("op", ["file.read", "file.stat", "file.list", "file.tree"])
async def test_a_target_that_leaves_the_root_reads_nothing(
    road: Road, out: Path, op: str, target: str, codes: set[str]
) -> None:
    (road.root / "a" / "b").mkdir(parents=True)
    (road.root / "a.txt").write_text("inside")
    envelope = await road.call(op, target)
    assert not envelope["ok"]
    assert envelope["error"]["code"] in codes
    assert CANARY not in json.dumps(envelope)
    assert str(road.root) not in json.dumps(envelope)


@pytest.mark.parametrize(("target", "codes"), REFUSED_TARGETS[:10])
async def test_a_target_that_leaves_the_root_writes_nothing(
    road: Road, out: Path, target: str, codes: set[str]
) -> None:
    for op, parts in WRITES(target):
        envelope = await road.call(op, *parts[0], **parts[1])
        assert not envelope["ok"], (op, envelope)
    assert unchanged(out)
    assert not Path("/etc/passwd.new").exists()


def WRITES(target: str) -> list[tuple[str, tuple[list[Any], dict[str, Any]]]]:
    parents = {"createParents": True}
    return [
        ("file.write", ([target], {"input": {"content": "pwn"}, "options": parents})),
        ("file.create", ([target + "/new"], {"input": {"content": "pwn"}, "options": parents})),
        ("file.mkdir", ([target], {"options": {"parents": True}})),
        ("file.delete", ([target], {"options": {"recursive": True}})),
        ("file.move", (["a.txt"], {"input": {"destination": target}, "options": parents})),
        ("file.copy", (["a.txt"], {"input": {"destination": target}, "options": parents})),
        ("file.move", ([target], {"input": {"destination": "stolen"}})),
        ("file.copy", ([target], {"input": {"destination": "stolen"}})),
        ("file.patch", ([target], {"input": {"edits": [{"oldText": "old", "newText": "pwn"}]}})),
    ]


@pytest.mark.parametrize("target", [{"path": "../out/secret.txt"}, ["a.txt"], 5, True, None])
async def test_a_target_that_is_no_string_is_refused(road: Road, target: Any) -> None:
    assert await road.code("file.read", target) == "invalid_request"


@pytest.mark.parametrize("scope", ["__proto__", "APP", "app/", "constructor", " app"])
async def test_only_the_exact_scope_id_names_a_scope(road: Road, out: Path, scope: str) -> None:
    assert await road.code("file.read", "secret.txt", scope=scope) == "unknown_scope"
    assert await road.code("file.read", "secret.txt", scope=str(out)) == "unknown_scope"


@pytest.mark.parametrize("link", ["ln", "d/secret.txt", "abs/secret.txt", "chain", "up", "through/../out/secret.txt"])
async def test_a_link_that_leaves_the_root_is_out_of_scope(road: Road, out: Path, link: str) -> None:
    root = road.root
    (root / "ln").symlink_to(out / "secret.txt")
    (root / "d").symlink_to("../out")
    (root / "abs").symlink_to(out)
    (root / "chain").symlink_to("ln")
    (root / "up").symlink_to("../out/secret.txt")
    (root / "through").symlink_to("..")
    for op in ("file.read", "file.tree", "file.list"):
        envelope = await road.call(op, link)
        assert not envelope["ok"], (op, envelope)
        # `through/..` is the root again, lexically, so that one is simply not there.
        assert envelope["error"]["code"] in ("path_out_of_scope", "not_found", "invalid_request")
        assert CANARY not in json.dumps(envelope)
    await road.call("file.write", link, input={"content": "pwn"})
    await road.call("file.create", link, input={"content": "pwn"})
    await road.call("file.patch", link, input={"edits": [{"oldText": "CANARY", "newText": "pwn"}]})
    await road.call("file.copy", link, input={"destination": "stolen"})
    assert unchanged(out)
    assert not (root / "stolen").exists()


async def test_a_dangling_link_out_is_neither_written_nor_created(road: Road, out: Path) -> None:
    (road.root / "ln").symlink_to(out / "new.txt")
    assert await road.code("file.create", "ln", input={"content": "pwn"}) == "already_exists"
    assert await road.code("file.write", "ln", input={"content": "pwn"}) == "path_out_of_scope"
    assert not (out / "new.txt").exists()


async def test_stat_and_listings_report_the_link_itself(road: Road, out: Path) -> None:
    (road.root / "ln").symlink_to(out / "secret.txt")
    data = await road.data("file.stat", "ln")
    assert (data["type"], data["size"]) == ("symlink", len(os.fsencode(out / "secret.txt")))
    assert await road.code("file.stat", "ln", options={"hash": True}) == "invalid_request"
    listed = (await road.data("file.list", "."))["entries"]
    assert [(entry["name"], entry["type"]) for entry in listed] == [("ln", "symlink")]
    tree = (await road.data("file.tree", "."))["entries"]
    assert [(entry["path"], entry["type"]) for entry in tree] == [("ln", "symlink")]


async def test_deleting_or_moving_a_link_leaves_what_it_leads_to(road: Road, out: Path) -> None:
    (road.root / "ln").symlink_to(out)
    await road.data("file.move", "ln", input={"destination": "ln2"})
    await road.data("file.delete", "ln2", options={"recursive": True})
    assert unchanged(out)
    (road.root / "sub").mkdir()
    (road.root / "sub" / "ln").symlink_to(out)
    await road.data("file.delete", "sub", options={"recursive": True})
    assert unchanged(out)


async def test_a_link_that_stays_inside_is_followed(road: Road) -> None:
    (road.root / "a").mkdir()
    (road.root / "a" / "f.txt").write_text("inside")
    (road.root / "in").symlink_to("a/f.txt")
    (road.root / "dir").symlink_to("a")
    assert (await road.data("file.read", "in"))["content"] == "inside"
    assert (await road.data("file.read", "dir/f.txt"))["content"] == "inside"
    await road.data("file.write", "in", input={"content": "new"})
    assert (road.root / "in").is_symlink()
    assert (road.root / "a" / "f.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("secret", "link"),
    [(".env", "notes.txt"), (".git/config", "config.txt"), ("keys/id_rsa", "k"), (".ssh/config", "c")],
)
async def test_a_link_to_a_closed_name_is_judged_by_what_it_opens(road: Road, secret: str, link: str) -> None:
    path = road.root / secret
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"TOKEN={CANARY}")
    (road.root / link).symlink_to(secret)
    if not secret.startswith(".git/"):
        envelope = await road.call("file.read", link)
        assert envelope["error"]["code"] == "permission_denied"
        assert CANARY not in json.dumps(envelope)
    assert await road.code("file.write", link, input={"content": "x"}) == "permission_denied"
    assert path.read_text() == f"TOKEN={CANARY}"


async def test_a_closed_folder_cannot_be_entered_through_a_link(road: Road) -> None:
    (road.root / ".ssh").mkdir()
    (road.root / ".ssh" / "config").write_text(CANARY)
    (road.root / "s").symlink_to(".ssh")
    for op in ("file.read", "file.stat"):
        assert await road.code(op, "s/config") == "permission_denied"
    assert await road.code("file.create", "s/new", input={"content": "x"}) == "permission_denied"
    assert not (road.root / ".ssh" / "new").exists()


async def test_temporary_names_cannot_be_planted(road: Road, out: Path) -> None:
    (road.root / "a.txt").write_text("x")
    for name in ("a.txt.tmp", ".a.txt.tmp", "a.txt~", ".~cl-", "a.txt.new"):
        (road.root / name).symlink_to(out / "secret.txt")
    await road.data("file.write", "a.txt", input={"content": "pwn"})
    assert (road.root / "a.txt").read_text() == "pwn"
    assert unchanged(out)


async def test_a_hardlink_is_read_with_a_warning_and_replaced_when_written(road: Road, out: Path) -> None:
    os.link(out / "secret.txt", road.root / "hl")
    os.link(out / "f.txt", road.root / "hf")
    envelope = await road.call("file.read", "hl")
    assert "hardlink" in envelope["warnings"][0]
    await road.data("file.write", "hl", input={"content": "pwn"})
    await road.data("file.write", "hf", input={"content": "more"}, options={"append": True})
    diff = "--- a/hf\n+++ b/hf\n@@ -1 +1 @@\n-old\n+pwn\n"
    await road.call("file.patch", input={"patch": diff})
    assert unchanged(out)
    assert (road.root / "hl").read_text() == "pwn"


@pytest.mark.parametrize(("secret", "link"), [(".env", "notes.txt"), (".env", "d/n.txt"), ("d/id_rsa", "d/k.txt")])
async def test_a_hardlink_to_a_secret_beside_it_is_refused(road: Road, secret: str, link: str) -> None:
    (road.root / "d").mkdir()
    (road.root / secret).write_text(CANARY)
    os.link(road.root / secret, road.root / link)
    envelope = await road.call("file.read", link)
    assert envelope["error"]["code"] == "permission_denied" and CANARY not in json.dumps(envelope)
    assert await road.code("file.copy", link, input={"destination": "c"}) == "permission_denied"
    assert await road.code("file.stat", link, options={"hash": True}) == "permission_denied"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
async def test_special_files_are_refused_at_once(road: Road, kind: str) -> None:
    path = road.root / "special"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        # By descriptor: a socket's path has at most 107 bytes.
        folder = os.open(road.root, os.O_PATH)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{folder}/special")
        os.close(folder)
    elif os.geteuid() != 0:
        pytest.skip("needs root to make a device")
    else:
        os.mknod(path, 0o20666, os.makedev(1, 5))
    for op, parts in (
        ("file.read", {}),
        ("file.write", {"input": {"content": "x"}}),
        ("file.write", {"input": {"content": "x"}, "options": {"append": True}}),
        ("file.copy", {"input": {"destination": "c"}}),
        ("file.patch", {"input": {"edits": [{"oldText": "a", "newText": "b"}]}}),
    ):
        envelope = await road.call(op, "special", **parts)
        assert envelope["error"]["code"] == "invalid_request", (op, envelope)
        assert envelope["durationMs"] < 30_000
    assert (await road.data("file.stat", "special"))["type"] == "other"
    await road.data("file.delete", "special")


async def test_the_root_itself_is_never_changed(road: Road) -> None:
    (road.root / "keep.txt").write_text("x")
    for target in ("", ".", "./", "a/..", "a/../."):
        assert await road.code("file.delete", target, options={"recursive": True}) == "invalid_request"
        assert await road.code("file.move", target, input={"destination": "b"}) == "invalid_request"
        assert await road.code("file.write", target, input={"content": "x"}) == "invalid_request"
    assert await road.code("file.move", "keep.txt", input={"destination": "."}) == "invalid_request"
    assert (road.root / "keep.txt").read_text() == "x"


PROTECTED = [
    ".git/config", ".GIT/hooks/pre-commit", ".git./config", "sub/.git/hooks/x", ".config/autostart/x.desktop",
    ".claude/settings.json", ".codex/config.toml", ".npmrc", ".vscode/tasks.json", ".mcp.json", ".bashrc", ".Cursor/mcp.json",
    ".git\u200b/config", "GIT~1/config", ".envrc", ".ssh/authorized_keys", ".computer-linker/config.json",
]  # fmt: skip


@pytest.mark.parametrize("target", PROTECTED)
async def test_protected_names_are_never_written(road: Road, target: str) -> None:
    (road.root / "f.txt").write_text("x\n")
    (road.root / "dir").mkdir()
    (road.root / "dir" / "hooks").mkdir()
    parents = {"createParents": True}
    add = f"--- /dev/null\n+++ b/{target}\n@@ -0,0 +1 @@\n+pwn\n"
    for op, start, parts in (
        ("file.write", target, {"input": {"content": "pwn"}, "options": parents}),
        ("file.create", target, {"input": {"content": "pwn"}, "options": parents}),
        ("file.mkdir", target, {"options": {"parents": True}}),
        ("file.move", "f.txt", {"input": {"destination": target}, "options": parents}),
        ("file.copy", "f.txt", {"input": {"destination": target}, "options": parents}),
        ("file.patch", None, {"input": {"diff": add}}),
    ):
        assert await road.code(op, start, **parts) == "permission_denied", op
    assert sorted(path.name for path in road.root.iterdir()) == ["dir", "f.txt"]


async def test_moving_a_folder_never_changes_what_its_contents_may_do(road: Road) -> None:
    (road.root / "x" / "autostart").mkdir(parents=True)
    (road.root / "x" / "autostart" / "evil.desktop").write_text("pwn")
    assert await road.code("file.move", "x", input={"destination": ".config"}) == "permission_denied"
    assert await road.code("file.copy", "x", input={"destination": ".config"}) == "permission_denied"
    (road.root / ".config" / "gh").mkdir(parents=True)
    (road.root / ".config" / "gh" / "hosts.yml").write_text(CANARY)
    assert await road.code("file.move", ".config", input={"destination": "cfg"}) == "permission_denied"
    envelope = await road.call("file.copy", ".config", input={"destination": "cfg"})
    assert envelope["ok"] and "not copied" in envelope["warnings"][0]
    assert not (road.root / "cfg" / "gh").exists()
    assert (road.root / ".config" / "gh" / "hosts.yml").exists()


async def test_a_folder_with_a_repository_is_not_deleted_as_a_whole(road: Road) -> None:
    (road.root / "repo" / ".git").mkdir(parents=True)
    assert await road.code("file.delete", "repo", options={"recursive": True}) == "permission_denied"
    assert (road.root / "repo" / ".git").exists()


async def test_a_denied_path_is_denied_through_a_link_too(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", deniedPaths=["secret/**"])
    async with Road.open(tmp_path, [scope]) as road:
        (road.root / "secret").mkdir()
        (road.root / "secret" / "k").write_text(CANARY)
        (road.root / "pub").mkdir()
        (road.root / "pub" / "ln").symlink_to("../secret/k")
        (road.root / "pub" / "dir").symlink_to("../secret")
        for target in ("pub/ln", "pub/dir/k", "secret/k", "SECRET/k"):
            envelope = await road.call("file.read", target)
            assert not envelope["ok"] and CANARY not in json.dumps(envelope)
        listed = await road.call("file.tree", ".", options={"maxDepth": 9})
        assert "secret/k" not in json.dumps(listed["data"])
        assert await road.code("file.move", "secret", input={"destination": "open"}) == "permission_denied"
        assert await road.code("file.delete", "secret", options={"recursive": True}) == "permission_denied"


async def test_a_narrower_read_only_scope_wins_for_its_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    narrow = {"id": "ro", "type": "folder", "roots": [str(root / "sub" / "ro")], "capabilities": ["fs:read"]}
    async with Road.open(tmp_path, [folder_scope(root), narrow]) as road:
        (root / "sub" / "ro").mkdir(parents=True)
        (root / "sub" / "ro" / "keep.txt").write_text("x")
        (root / "ln").symlink_to("sub/ro")
        for target in ("sub/ro/x.txt", "ln/x.txt"):
            assert await road.code("file.write", target, input={"content": "x"}) == "permission_denied"
        assert await road.code("file.delete", "sub", options={"recursive": True}) == "permission_denied"
        assert await road.code("file.move", "sub", input={"destination": "moved"}) == "permission_denied"
        assert [path.name for path in (root / "sub" / "ro").iterdir()] == ["keep.txt"]


async def test_the_services_own_state_is_closed_under_any_name(tmp_path: Path) -> None:
    scope = {"id": "app", "type": "folder", "roots": [str(tmp_path)], "capabilities": FOLDER_CAPABILITIES}
    async with Road.open(tmp_path, [scope]) as road:
        (road.home / "config.json").write_text(CANARY)
        (tmp_path / "ln").symlink_to("home")
        for target in ("home/config.json", "ln/config.json"):
            assert await road.code("file.read", target) == "permission_denied"
            assert await road.code("file.write", target, input={"content": "x"}) == "permission_denied"
        assert await road.code("file.list", "home") == "permission_denied"
        assert await road.code("file.delete", "home", options={"recursive": True}) == "permission_denied"
        assert await road.code("file.move", "home", input={"destination": "h2"}) == "permission_denied"
        await road.call("file.copy", ".", input={"destination": "x"})
        assert CANARY not in json.dumps(await road.call("file.tree", ".", options={"maxDepth": 9}))
        assert (road.home / "config.json").read_text() == CANARY


async def test_a_root_replaced_by_a_link_elsewhere_opens_nothing(road: Road, out: Path) -> None:
    (road.root / "a.txt").write_text("inside")
    await road.data("file.read", "a.txt")
    road.root.rename(road.root.with_name("moved"))
    assert await road.code("file.read", "a.txt") == "not_found"
    road.root.symlink_to(out)
    assert await road.code("file.read", "secret.txt") == "path_out_of_scope"
    road.root.unlink()
    road.root.mkdir()
    (road.root / "b.txt").write_text("again")
    assert (await road.data("file.read", "b.txt"))["content"] == "again"
