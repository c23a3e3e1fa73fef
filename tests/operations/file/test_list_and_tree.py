"""file.list and file.tree: order, pages, limits, gitignore, and what is left out."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from computer_linker.computer.gitignore import IgnoreFile, is_ignored, parse_ignore
from support.road import Road

pytestmark = pytest.mark.anyio


async def paths(road: Road, target: str = ".", **options: object) -> list[str]:
    return [entry["path"] for entry in (await road.data("file.tree", target, options=options))["entries"]]


async def test_a_folder_is_listed_by_name(road: Road) -> None:
    (road.root / "b").mkdir()
    (road.root / "a.txt").write_text("xyz")
    (road.root / ".hidden").touch()
    os.utime(road.root / "a.txt", ns=(0, 1_700_000_000_123_000_000))
    entries = (await road.data("file.list"))["entries"]
    assert [entry["name"] for entry in entries] == [".hidden", "a.txt", "b"]
    assert entries[1] == {
        "name": "a.txt", "path": "a.txt", "type": "file", "size": 3, "modifiedAt": "2023-11-14T22:13:20.123Z",
    }  # fmt: skip
    shown = (await road.data("file.list", ".", options={"includeHidden": False}))["entries"]
    assert [entry["name"] for entry in shown] == ["a.txt", "b"]


async def test_a_listing_has_the_fields_that_are_asked_for(road: Road) -> None:
    (road.root / "b").mkdir()
    (road.root / "a.txt").write_text("xyz")
    (road.root / "link").symlink_to("a.txt")
    os.mkfifo(road.root / "pipe")

    async def listed(*fields: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = (await road.data("file.list", ".", options={"fields": list(fields)}))[
            "entries"
        ]
        return found

    assert await listed("name", "type") == [
        {"name": "a.txt", "type": "file"}, {"name": "b", "type": "directory"}, {"name": "link", "type": "symlink"},
        {"name": "pipe", "type": "other"},
    ]  # fmt: skip
    assert (await listed("size"))[0] == {"name": "a.txt", "size": 3}
    assert (await listed("path"))[0] == {"name": "a.txt", "path": "a.txt"}
    whole = (await road.data("file.list"))["entries"]
    assert await listed("name", "path", "type", "size", "modifiedAt") == whole
    refused = await road.call("file.list", ".", options={"fields": ["owner"]})
    assert refused["error"]["code"] == "invalid_request"


async def test_paths_in_a_listing_can_be_used_as_targets(road: Road) -> None:
    (road.root / "d" / "e").mkdir(parents=True)
    (road.root / "d" / "e" / "f.txt").write_text("x")
    entry = (await road.data("file.list", "d/e/"))["entries"][0]
    assert (await road.data("file.read", entry["path"]))["content"] == "x"
    assert "d/e/f.txt" in await paths(road, "d", maxDepth=5)


async def test_pages_cover_every_name_once_while_others_come_and_go(road: Road) -> None:
    names = [f"f{number:04d}" for number in range(250)]
    for name in names:
        (road.root / name).touch()
    seen: list[str] = []
    cursor = None
    while True:
        options = {"maxResults": 40} | ({"cursor": cursor} if cursor else {})
        data = await road.data("file.list", ".", options=options)
        seen += [entry["name"] for entry in data["entries"]]
        cursor = data["nextCursor"]
        assert data["truncated"] is (cursor is not None)
        if cursor is None:
            break
        (road.root / "f0000-new").touch(exist_ok=True)
        (road.root / "f0001").unlink(missing_ok=True)
    assert seen == names
    assert await road.code("file.list", ".", options={"cursor": "!!"}) == "invalid_request"


async def test_a_page_of_long_names_still_fits_one_reply(road: Road) -> None:
    (road.root / ("p" * 200)).mkdir()
    for number in range(9000):
        (road.root / ("p" * 200) / f"{number:05d}{'€' * 80}").touch()
    envelope = await road.call("file.list", "p" * 200, options={"maxResults": 20_000})
    assert envelope["data"]["truncated"] and envelope["data"]["nextCursor"]
    assert len(json.dumps(json.dumps(envelope, ensure_ascii=False), ensure_ascii=False).encode()) <= 8 << 20
    rest = await road.data(
        "file.list", "p" * 200, options={"cursor": envelope["data"]["nextCursor"], "maxResults": 20_000}
    )
    assert rest["entries"][0]["name"] > envelope["data"]["entries"][-1]["name"]


async def test_a_tree_is_level_by_level_and_says_when_it_is_cut(road: Road) -> None:
    (road.root / "a" / "b" / "c" / "d").mkdir(parents=True)
    (road.root / "a" / "x.txt").touch()
    (road.root / "z.txt").touch()
    assert await paths(road, maxDepth=9) == ["a", "z.txt", "a/b", "a/x.txt", "a/b/c", "a/b/c/d"]
    assert await paths(road, maxDepth=1) == ["a", "z.txt"]
    data = await road.data("file.tree", ".", options={"maxEntries": 3})
    assert len(data["entries"]) == 3 and data["truncated"]


async def test_a_tree_of_any_size_or_depth_is_clamped(road: Road) -> None:
    folder = os.open(road.root, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    envelope = await road.call("file.tree", ".", options={"maxDepth": 1_000_000, "maxEntries": 1_000_000_000})
    assert envelope["ok"] and len(envelope["data"]["entries"]) == 64 and envelope["durationMs"] < 30_000
    subprocess.run(["rm", "-rf", str(road.root / "d")], check=True)


async def test_secret_folders_are_named_and_not_entered(road: Road) -> None:
    (road.root / ".ssh").mkdir()
    (road.root / ".ssh" / "id_rsa").touch()
    (road.root / ".env").touch()
    assert await paths(road) == [".env", ".ssh"]
    assert await road.code("file.list", ".ssh") == "permission_denied"


async def test_names_that_are_not_text_are_shown_escaped(road: Road) -> None:
    (Path(os.fsdecode(os.fsencode(road.root) + b"/bad\xff"))).touch()
    envelope = await road.call("file.list", ".")
    assert envelope["data"]["entries"][0]["name"] == "bad\\xff" and envelope["warnings"]
    assert (await road.call("file.tree", "."))["data"]["entries"][0]["path"] == "bad\\xff"


async def test_a_tree_leaves_out_what_git_ignores(road: Road) -> None:
    (road.root / ".gitignore").write_text("*.log\nbuild/\n/only-here\n!keep.log\n")
    for name in (
        "a.log",
        "keep.log",
        "build/x",
        "src/only-here",
        "only-here",
        "src/b.log",
        ".git/config",
        "src/deep/x.tmp",
    ):
        (road.root / name).parent.mkdir(parents=True, exist_ok=True)
        (road.root / name).touch()
    (road.root / "src" / ".gitignore").write_text("*.tmp\n!b.log\n")
    found = await paths(road, maxDepth=9)
    assert found == [
        ".gitignore", "keep.log", "src", "src/.gitignore", "src/b.log", "src/deep", "src/only-here",
    ]  # fmt: skip
    assert await paths(road, "src", maxDepth=9) == ["src/.gitignore", "src/b.log", "src/deep", "src/only-here"]
    assert "a.log" in await paths(road, gitignore=False)


async def test_our_own_temporaries_are_never_listed(road: Road) -> None:
    (road.root / ".~cl-0123").touch()
    assert await paths(road) == []
    assert (await road.data("file.list"))["entries"] == []


# git cuts the plain beginning off before it reads `b**/c`, and so takes it for `b` and then `**/c`; we read what is written.
PATTERN = st.text("ab*?/!.[]c#\\ -^", min_size=1, max_size=8).filter(lambda text: not re.search(r"[^/*]\*\*+/", text))
NAME = st.text("abc.", min_size=1, max_size=3).filter(lambda name: name not in (".", "..", ".git"))


@example(["["], ["[/.]*", r"b\/c"], [["a", "b", "c"]])
@example(["?[[c]", "[[:alpha:]]b", r"[\]-a]", "[c-a]"], [], [["ac"], ["ab"], ["]"], ["c"]])
@given(
    st.lists(PATTERN, min_size=1, max_size=5),
    st.lists(PATTERN, max_size=3),
    st.lists(st.lists(NAME, min_size=1, max_size=3), min_size=1, max_size=8),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_the_matcher_agrees_with_git(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], inner: list[str], names: list[list[str]]
) -> None:
    root = tmp_path_factory.mktemp("git")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("\n".join(top) + "\n")
    (root / "a").mkdir()
    (root / "a" / ".gitignore").write_text("\n".join(inner) + "\n")
    for parts in names:
        path = root.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError:
            continue
    found = sorted(path for path in root.rglob("*") if ".git" not in path.relative_to(root).parts)
    given = "\0".join(str(path.relative_to(root)) for path in found)
    environment = {"HOME": str(root), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    run = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "--stdin", "-z", "--no-index"],
        input=given.encode(), capture_output=True, env=environment, check=False,
    )  # fmt: skip
    theirs = {name for name in run.stdout.decode().split("\0") if name}
    assert {str(path.relative_to(root)) for path in found if _ignored(root, path)} == theirs


def _ignored(root: Path, path: Path) -> bool:
    """As a walk does it: whatever lies in an ignored folder is ignored."""
    parts = path.relative_to(root).parts
    for depth in range(1, len(parts) + 1):
        files: tuple[IgnoreFile, ...] = ()
        for above in range(depth):
            folder = root.joinpath(*parts[:above])
            if (folder / ".gitignore").is_file():
                files += (parse_ignore((folder / ".gitignore").read_text(), "".join(f"{p}/" for p in parts[:above])),)
        name = "/".join(parts[:depth])
        if is_ignored(files, name, is_folder=(root / name).is_dir()):
            return True
    return False


async def test_a_cut_tree_goes_on_where_it_ended(road: Road) -> None:
    """Mission gap "tree": a truncated tree has a cursor, and its pages together are the whole tree."""
    for number in range(12):
        (road.root / f"d{number:02}" / "in" / "deep").mkdir(parents=True)
        (road.root / f"d{number:02}" / "in" / f"f{number}.txt").touch()
        (road.root / f"x{number:02}.txt").touch()
    (road.root / ".gitignore").write_text("x03.txt\n")
    whole = await road.data("file.tree", ".", options={"maxDepth": 9})
    assert not whole["truncated"] and whole["nextCursor"] is None
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        options = {"maxDepth": 9, "maxEntries": 7} | ({"cursor": cursor} if cursor else {})
        page = await road.data("file.tree", ".", options=options)
        assert page["truncated"] is (page["nextCursor"] is not None) and len(page["entries"]) <= 7
        seen += page["entries"]
        cursor, pages = page["nextCursor"], pages + 1
    assert seen == whole["entries"] and pages == -(-len(seen) // 7)
    first = await road.data("file.tree", ".", options={"maxEntries": 1})
    for other, options in (("d00", {}), (".", {"gitignore": False})):
        request = {"cursor": first["nextCursor"], **options}
        assert await road.code("file.tree", other, options=request) == "invalid_request"
    assert await road.code("file.tree", ".", options={"cursor": "!!"}) == "invalid_request"
