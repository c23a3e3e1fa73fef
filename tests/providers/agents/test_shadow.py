"""Snapshots: the very bytes of a folder, whatever it is and whatever its own settings say."""

import os
from pathlib import Path

import pytest

from computer_linker.errors import LinkError
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.providers.agents.shadow import Shadow
from support.repositories import git, repository, trap

pytestmark = pytest.mark.anyio


def at(folder: Path, *parts: str, rules: PathRules | None = None) -> RootedPath:
    return RootedPath(str(folder), parts, rules or PathRules())


async def test_counts_are_those_of_git(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    (root / "bin.dat").write_bytes(bytes(range(256)))
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "all")
    shadow = Shadow(tmp_path / "shadow")
    before = await shadow.take(at(root))
    (root / "a.txt").write_text("ONE\ntwo\nthree\n")
    (root / "bin.dat").write_bytes(b"\0" * 300)
    (root / "sub" / "x.txt").rename(root / "sub" / "y.txt")
    (root / 'odd "name"\n.txt').write_text("odd\n")
    found = await shadow.compare(at(root), before, await shadow.take(at(root)), 100_000)
    git(root, "add", "-A", "-N")
    told = git(root, "diff", "--numstat", "--no-renames", "-z", "HEAD").split("\0")
    expected = {tuple(line.split("\t", 2)) for line in told if line}
    ours = {
        (
            "-" if each.is_binary else str(each.insertions),
            "-" if each.is_binary else str(each.deletions),
            "/".join(each.parts),
        )
        for each in found.changed
    }
    assert ours == expected
    assert "+ONE" in found.patch and not found.is_cut


async def test_bytes_survive_line_ending_rules_and_filters_never_run(tmp_path: Path) -> None:
    root, mark = repository(tmp_path / "root"), tmp_path / "mark"
    script = trap(root, mark)
    git(root, "config", "filter.x.clean", str(script))
    git(root, "config", "core.autocrlf", "true")
    (root / ".gitattributes").write_text("*.txt text eol=crlf filter=x\n")
    (root / "a.txt").write_bytes(b"one\r\ntwo\n")
    shadow = Shadow(tmp_path / "shadow")
    before = await shadow.take(at(root))
    (root / "a.txt").write_bytes(b"gone")
    found = await shadow.compare(at(root), before, await shadow.take(at(root)), 1000)
    blob = found.changed[0].old_blob
    assert (await shadow.contents(at(root), [blob]))[blob] == b"one\r\ntwo\n"
    assert not mark.exists()


async def test_secrets_ignored_files_and_inner_repositories_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / ".gitignore").write_text("build/\n")
    (root / "build").mkdir()
    repository(root / "inner [1]")
    (root / "empty").mkdir()
    git(root / "empty", "init", "-q")
    rules = PathRules(denied=("private/**",))
    shadow = Shadow(tmp_path / "shadow")
    before = await shadow.take(at(root, rules=rules))
    assert before.repositories >= 1
    (root / ".env").write_text("TOKEN=CANARY")
    (root / "build" / "out.txt").write_text("CANARY")
    (root / "inner [1]" / "a.txt").write_text("CANARY")
    (root / "private").mkdir()
    (root / "private" / "p.txt").write_text("CANARY")
    (root / "seen.txt").write_text("seen\n")
    found = await shadow.compare(at(root, rules=rules), before, await shadow.take(at(root, rules=rules)), 10_000)
    assert [each.parts for each in found.changed] == [("seen.txt",)]
    assert "CANARY" not in found.patch
    assert not any(b"TOKEN=CANARY" in path.read_bytes() for path in (tmp_path / "shadow").rglob("*") if path.is_file())


async def test_a_link_is_not_followed_and_a_large_folder_is_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("CANARY")
    shadow = Shadow(tmp_path / "shadow")
    before = await shadow.take(at(root))
    (root / "link").symlink_to(outside)
    found = await shadow.compare(at(root), before, await shadow.take(at(root)), 10_000)
    assert [each.parts for each in found.changed] == [("link",)] and "CANARY" not in found.patch
    with (root / "huge").open("wb") as file:
        os.truncate(file.fileno(), 1 << 30)
    with pytest.raises(LinkError):
        await shadow.take(at(root))


async def test_a_lock_left_by_a_kill_does_not_stop_the_next_snapshot(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    shadow = Shadow(tmp_path / "shadow")
    first = await shadow.take(at(root))
    place = next((tmp_path / "shadow").iterdir())
    (place / "index.lock").write_text("")
    (root / "more.txt").write_text("more\n")
    assert await shadow.take(at(root)) != first


async def test_new_folders_are_told_and_old_empty_ones_are_not(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "old" / "empty").mkdir(parents=True)
    shadow = Shadow(tmp_path / "shadow")
    before = await shadow.take(at(root))
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "f.txt").write_text("f\n")
    (root / "old" / "empty" / "g.txt").write_text("g\n")
    found = await shadow.compare(at(root), before, await shadow.take(at(root)), 10_000)
    assert found.new_folders == [("new", "deep"), ("new",)]
