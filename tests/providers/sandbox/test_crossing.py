"""Commands inside the boundary try to cross it, for real; the same commands succeed where policy allows."""

import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.local.linux.id_range import other_ids
from computer_linker.providers.sandbox.boundary import Kind
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import FOLDER_CAPABILITIES, Road, folder_scope

pytestmark = pytest.mark.anyio

CANARY = "CANARY-3f9c"


@asynccontextmanager
async def boundary(tmp_path: Path, kind: Kind, **policy: Any) -> AsyncIterator[Road]:
    """A road whose commands run inside one kind of boundary, which must hold on this machine."""
    (tmp_path / "root").mkdir(exist_ok=True)
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="required", **policy)
    async with Road.open(tmp_path, [scope]) as road:
        sandbox = Sandbox(road.app.computer, road.home, kinds=(kind,))
        found = await sandbox.probe()
        if not found.holds:
            pytest.skip(f"{kind} cannot be had here: {found.detail}")
        road.app.services.provide(Sandbox, sandbox)
        yield road


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


async def sh(road: Road, script: str, **parts: Any) -> dict[str, Any]:
    return await road.data("command.run", ".", input={"command": ["sh", "-c", script]}, **parts)


async def test_the_boundary_is_named_in_the_result(tmp_path: Path, kind: Kind) -> None:
    async with boundary(tmp_path, kind) as road:
        told = (await sh(road, "echo hi"))["boundary"]
        assert told.startswith(f"{kind}: files, network, processes")
        assert ("protected names" in told) is (kind == "bubblewrap")


async def test_a_canary_outside_the_roots_cannot_be_read(tmp_path: Path, kind: Kind) -> None:
    outside = tmp_path / "outside" / "secret.txt"
    outside.parent.mkdir()
    outside.write_text(CANARY)
    at_home = Path.home() / f".cl-canary-{os.getpid()}"
    at_home.write_text(CANARY)
    try:
        async with boundary(tmp_path, kind) as road:
            ran = await sh(road, f"cat {outside} {at_home} {road.home}/*; ls {at_home.parent}; true")
            assert CANARY not in ran["stdout"] + ran["stderr"] and at_home.name not in ran["stdout"]
            (road.root / "mine.txt").write_text(CANARY)
            assert (await sh(road, "cat mine.txt"))["stdout"] == CANARY
    finally:
        at_home.unlink()


async def test_nothing_outside_the_roots_can_be_written(tmp_path: Path, kind: Kind) -> None:
    async with boundary(tmp_path, kind) as road:
        await sh(road, f"echo x > {tmp_path}/planted; echo x > {road.home}/planted; echo x > /etc/planted; true")
        await sh(road, f"echo x > /var/tmp/cl-planted-{os.getpid()}; touch /usr/bin/cl-planted; true")
        planted = [tmp_path / "planted", road.home / "planted", Path("/etc/planted"), Path("/usr/bin/cl-planted")]
        planted.append(Path(f"/var/tmp/cl-planted-{os.getpid()}"))
        assert [path for path in planted if path.exists()] == []
        assert (await sh(road, "echo x > inside"))["exitCode"] == 0
        assert (road.root / "inside").read_text() == "x\n"


async def test_the_network_is_cut_and_can_be_granted(tmp_path: Path, kind: Kind) -> None:
    connect = "import socket,sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 3); print('GOT')"
    with socket.create_server(("127.0.0.1", 0)) as server:
        argv = ["/usr/bin/python3", "-c", connect, str(server.getsockname()[1])]
        async with boundary(tmp_path, kind) as road:
            assert "GOT" not in (await road.data("command.run", ".", input={"command": argv}))["stdout"]
        async with boundary(tmp_path, kind, network=True) as road:
            granted = await road.data("command.run", ".", input={"command": argv})
            assert granted["stdout"] == "GOT\n" and "network" not in granted["boundary"]


async def test_the_service_can_be_neither_seen_nor_signalled(tmp_path: Path, kind: Kind) -> None:
    async with boundary(tmp_path, kind) as road:
        ran = await sh(
            road, f"kill -0 {os.getpid()} && echo SIGNALLED; cat /proc/{os.getpid()}/environ && echo SEEN; true"
        )
        assert "SIGNALLED" not in ran["stdout"] and "SEEN" not in ran["stdout"]


async def test_protected_names_cannot_be_written_made_or_moved(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    nested = root / "packages" / "lib"
    nested.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(nested)], check=True)
    (root / ".vscode").mkdir()
    (root / ".vscode" / "tasks.json").write_text("{}")
    async with boundary(tmp_path, "bubblewrap") as road:
        await sh(
            road,
            "for f in .git/hooks/pre-commit packages/lib/.git/hooks/pre-commit .git/config .vscode/tasks.json "
            ".codex/config.toml .claude/settings.json .mcp.json .cursor/mcp.json .envrc .npmrc .husky/pre-commit; do "
            "mkdir -p $(dirname $f); echo EVIL >> $f; done; mv .git .git2; mv .vscode v; rmdir .codex; rm -rf .git .claude; "
            "ln -s /etc .idea; mkdir x && mv x .agents; true",
        )
        for name in (
            ".git/hooks/pre-commit",
            "packages/lib/.git/hooks/pre-commit",
            ".codex",
            ".claude",
            ".mcp.json",
            ".cursor",
        ):
            assert not (root / name).exists(), name
        for name in (".envrc", ".npmrc", ".husky", ".idea", ".agents", ".git2", "v"):
            assert not (root / name).exists(), name
        assert (root / ".vscode" / "tasks.json").read_text() == "{}"
        assert "EVIL" not in (root / ".git" / "config").read_text()
        assert (await sh(road, "git status --short"))["exitCode"] == 0


async def test_protected_names_open_where_policy_allows(tmp_path: Path) -> None:
    async with boundary(tmp_path, "bubblewrap", allowProtected=True) as road:
        assert (await sh(road, "git init -q . && mkdir .codex && echo ok"))["stdout"] == "ok\n"
        assert (road.root / ".git").is_dir() and (road.root / ".codex").is_dir()


async def test_a_command_sees_the_folder_as_it_is(tmp_path: Path) -> None:
    """Nothing stands in for names that are missing, neither during a command nor after it."""
    root = tmp_path / "root"
    repository = root / "packages" / "lib"
    repository.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    async with boundary(tmp_path, "bubblewrap") as road:
        for folder in (root, repository):
            outside = sorted(os.listdir(folder))
            inside = (await sh(road, f"ls -A {folder.relative_to(root)}"))["stdout"].split()
            assert sorted(inside) == outside == sorted(os.listdir(folder))


async def test_secrets_and_denied_parts_of_a_root_are_closed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub" / "private").mkdir(parents=True)
    for name in (".env", "sub/server.key", "sub/private/note.txt"):
        (root / name).write_text(CANARY)
    script = "cat .env sub/server.key sub/private/note.txt; rm -rf sub/private .env; true"
    async with boundary(tmp_path, "bubblewrap", deniedPaths=["sub/private"]) as road:
        ran = await sh(road, script)
        assert CANARY not in ran["stdout"] + ran["stderr"]
        assert (root / ".env").read_text() == (root / "sub" / "private" / "note.txt").read_text() == CANARY
    async with boundary(tmp_path, "bubblewrap", allowSensitive=True) as road:
        assert (await sh(road, "cat .env"))["stdout"] == CANARY


async def test_secrets_and_denied_parts_are_closed_however_deep(tmp_path: Path) -> None:
    root = tmp_path / "root"
    deep, deeper = "a/b/c/d/e/f", "/".join("x" * 20)
    for folder in (deep, f"{deeper}/private"):
        (root / folder).mkdir(parents=True)
    for name in (f"{deep}/.env", f"{deeper}/private/note.txt"):
        (root / name).write_text(CANARY)
    async with boundary(tmp_path, "bubblewrap", deniedPaths=[f"{deeper}/private/**"]) as road:
        ran = await sh(road, f"cat {deep}/.env {deeper}/private/note.txt; ls {deeper}/private")
        assert CANARY not in ran["stdout"] and "note.txt" not in ran["stdout"]


async def test_a_folder_above_a_denied_part_keeps_its_name(tmp_path: Path) -> None:
    """Under another name the denied part would be open to every operation that comes after."""
    root = tmp_path / "root"
    for folder in ("sub/in/private", ".config/gh"):
        (root / folder).mkdir(parents=True)
        (root / folder / "note.txt").write_text(CANARY)
    async with boundary(tmp_path, "bubblewrap", deniedPaths=["sub/in/private"]) as road:
        await sh(road, "mv sub sub2; mv sub/in sub/in2; mv .config config; touch sub/in/fresh; true")
        for name in ("sub", "sub/in", "sub/in/fresh", ".config/gh"):
            assert (root / name).exists()
        assert sorted(path.name for path in root.iterdir()) == [".config", "sub"]


async def test_many_files_made_meanwhile_open_no_secret(tmp_path: Path) -> None:
    """A flood would once have hidden a folder from the look: each that changed is looked at again, however many there are."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / ".env").write_text(CANARY)
    async with boundary(tmp_path, "bubblewrap") as road:
        made = "for d in 1 2 3 4; do mkdir a$d; for n in $(seq 900); do : > a$d/f$n; done; done"
        assert CANARY not in (await sh(road, f"cat sub/.env; {made}"))["stdout"]
        (root / "a4" / ".env").write_text(CANARY)
        assert CANARY not in (await sh(road, "cat sub/.env a4/.env; true"))["stdout"]
        (root / "a4" / ".env").rename(root / "a1" / ".env")
        ran = await road.call("command.run", ".", input={"command": ["cat", "sub/.env", "a1/.env"]})
        assert CANARY not in ran["data"]["stdout"]
        assert ran["warnings"] == []


async def test_a_folder_too_deep_to_look_through_is_told_or_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "/".join("x" * 80)).mkdir(parents=True)
    async with boundary(tmp_path, "bubblewrap") as road:
        ran = await road.call("command.run", ".", input={"command": ["touch", "ran"]})
        assert ran["error"]["code"] == "provider_unavailable"
        assert [path.name for path in root.iterdir()] == ["x"]
    (tmp_path / "told").mkdir()
    async with Road.open(tmp_path / "told", [folder_scope(root, allowedCommands=["*"], sandbox="auto")]) as road:
        ran = await road.call("command.run", ".", input={"command": ["true"]})
        assert any("too large" in warning for warning in ran["warnings"])


async def test_the_service_state_is_closed_even_inside_a_root(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path, allowedCommands=["*"], sandbox="required")
    async with Road.open(tmp_path, [scope]) as road:
        (road.home / "owner").write_text(CANARY)
        ran = await sh(road, "cat home/owner; ls -a home; echo x > home/planted; mv home h; true")
        assert CANARY not in ran["stdout"] and "owner" not in ran["stdout"]
        assert (road.home / "owner").exists() and not (road.home / "planted").exists()


async def test_a_scope_without_fs_write_shows_its_roots_read_only(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="required")
    scope["capabilities"] = [name for name in FOLDER_CAPABILITIES if name != "fs:write"]
    async with Road.open(tmp_path, [scope]) as road:
        (road.root / "a.txt").write_text("here")
        ran = await sh(road, "cat a.txt; echo x > b.txt; rm a.txt; true")
        assert ran["stdout"] == "here"
        assert [path.name for path in road.root.iterdir()] == ["a.txt"]


async def test_no_rights_can_be_gained_inside(tmp_path: Path) -> None:
    async with boundary(tmp_path, "bubblewrap") as road:
        status = (await sh(road, "cat /proc/self/status"))["stdout"]
        # A superuser has seven for files and processes of other users, valid for the ids of its namespace alone.
        capabilities = 0 if other_ids() is None else 0b1111_1011
        assert "NoNewPrivs:\t1" in status and f"CapEff:\t{capabilities:016x}" in status
        (road.root / "f").write_text("x")
        escaped = (
            "unshare -Ur --mount sh -c 'umount .codex; mount -o remount,rw /usr; echo x > .codex/y; touch /usr/cl-y'"
        )
        await sh(road, f"{escaped}; mount -t proc proc /proc; echo core > /proc/sys/kernel/core_pattern; true")
        assert not Path("/usr/cl-y").exists() and not (road.root / ".codex").exists()


async def test_a_child_gets_no_descriptor_of_the_service(tmp_path: Path, kind: Kind) -> None:
    async with boundary(tmp_path, kind) as road:
        (road.root / "held").write_text("x")
        ran = await road.data("command.run", ".", input={"command": ["ls", "/proc/self/fd"]})
        assert ran["stdout"].split() == ["0", "1", "2", "3"]


async def test_the_environment_holds_nothing_of_the_service(tmp_path: Path, kind: Kind) -> None:
    os.environ["CL_TEST_SECRET"] = CANARY
    try:
        async with boundary(tmp_path, kind) as road:
            assert CANARY not in (await road.data("command.run", ".", input={"command": "env"}))["stdout"]
        async with boundary(tmp_path, kind, environment=["CL_TEST_SECRET"]) as road:
            assert CANARY in (await road.data("command.run", ".", input={"command": "env"}))["stdout"]
    finally:
        del os.environ["CL_TEST_SECRET"]


async def test_without_any_boundary_required_refuses_and_auto_says_so(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    scopes = [
        folder_scope(tmp_path / "root", "must", allowedCommands=["*"], sandbox="required"),
        folder_scope(tmp_path / "root", "auto", allowedCommands=["touch *"]),
        folder_scope(tmp_path / "root", "any", sandbox="auto"),
    ]
    async with Road.open(tmp_path, scopes) as road:
        road.app.services.provide(Sandbox, Sandbox(road.app.computer, road.home, kinds=()))
        marker = road.root / "marker"
        touch: dict[str, Any] = {"input": {"command": ["touch", "marker"]}}
        assert await road.code("command.run", ".", scope="must", **touch) == "provider_unavailable"
        assert await road.code("command.run", ".", scope="any", **touch) == "permission_denied"
        assert await road.code("command.start", ".", scope="must", **touch) == "provider_unavailable"
        assert not marker.exists()
        envelope = await road.call("command.run", ".", scope="auto", **touch)
        assert envelope["data"]["boundary"] == "none" and "No kernel boundary" in envelope["warnings"][0]
        assert marker.exists()
