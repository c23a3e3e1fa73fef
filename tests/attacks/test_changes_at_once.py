"""A change is judged when it is prepared and made later: what other changes did in between opens no protected path."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from computer_linker.computer.facets.files import Change, Copy, MakeFolder, Move, Remove, Write
from computer_linker.computer.local.portable.files.facet import LocalFiles
from computer_linker.errors import LinkError
from computer_linker.model.paths import PathRules, RootedPath

pytestmark = pytest.mark.anyio

At = Callable[[str], RootedPath]
EVIL = ".config/autostart/evil.desktop"


@pytest.fixture
def at(tmp_path: Path) -> At:
    for name in ("q", "full/autostart", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "full/autostart/evil.desktop").write_text("x")
    return lambda path: RootedPath(str(tmp_path), tuple(path.split("/")), PathRules())


async def between(files: LocalFiles, first: list[Change], second: list[Change]) -> list[str]:
    """Prepare the first, make the second, then make the first; the codes of both."""

    async def made(changes: list[Change], gate: Callable[[], object]) -> str:
        async def awaited() -> None:
            await gate()  # type: ignore[misc]

        try:
            await files.change(changes, gate=awaited)
        except LinkError as error:
            return error.code
        return "done"

    inner: list[str] = []

    async def other() -> None:
        inner.append(await made(second, anyio.lowlevel.checkpoint))

    return [await made(first, other), *inner]


INTO: dict[str, Callable[[At], list[Change]]] = {
    "a write": lambda at: [Write(at("q/autostart/evil.desktop"), b"x", create_parents=True)],
    "a folder": lambda at: [MakeFolder(at("q/autostart/evil.desktop"), parents=True)],
    "a copy": lambda at: [Copy(at("full/autostart"), at("q/autostart"))],
    "a move": lambda at: [Move(at("full/autostart"), at("q/autostart"))],
    "several": lambda at: [
        Write(at("other/a"), b"x"),
        Write(at("q/autostart/evil.desktop"), b"x", create_parents=True),
    ],
}


def away(at: At) -> list[Change]:
    return [Move(at("q"), at(".config"))]


@pytest.mark.parametrize("kind", INTO)
async def test_what_is_put_into_a_folder_does_not_move_along_to_a_protected_path(
    tmp_path: Path, at: At, kind: str
) -> None:
    """Found: a write into q/autostart and a move of q to .config at the same moment planted a program of the session."""
    files = LocalFiles()
    moved_meanwhile = await between(files, INTO[kind](at), away(at))
    assert moved_meanwhile == ["conflict", "done"] and not (tmp_path / ".config/autostart").exists()
    assert not (tmp_path / "other/a").exists() and (tmp_path / "full/autostart/evil.desktop").exists()
    (tmp_path / ".config").rename(tmp_path / "q")
    put_meanwhile = await between(files, away(at), INTO[kind](at))
    assert put_meanwhile[1] == "done" and put_meanwhile[0] in ("permission_denied", "conflict"), put_meanwhile
    assert not (tmp_path / ".config").exists() and (tmp_path / "q/autostart/evil.desktop").exists()


async def test_one_batch_does_it_neither(tmp_path: Path, at: At) -> None:
    with pytest.raises(LinkError):
        await LocalFiles().change([*INTO["a write"](at), *away(at)], gate=anyio.lowlevel.checkpoint)
    assert not (tmp_path / ".config").exists() and not (tmp_path / "q/autostart").exists()


async def test_a_file_that_is_moved_from_a_moved_folder_is_a_conflict(tmp_path: Path, at: At) -> None:
    (tmp_path / "q/a").write_text("x")
    for first in (Move(at("q/a"), at("b")), Remove(at("q/a")), Write(at("q/a"), b"y")):
        assert await between(LocalFiles(), [first], [Move(at("q"), at("r"))]) == ["conflict", "done"]
        assert (tmp_path / "r/a").read_text() == "x" and not (tmp_path / "b").exists()
        (tmp_path / "r").rename(tmp_path / "q")


async def test_harmless_changes_in_a_moved_folder_move_along(tmp_path: Path, at: At) -> None:
    (tmp_path / "q/sub").mkdir()
    done = await between(LocalFiles(), away(at), [Write(at("q/sub/notes.txt"), b"x"), MakeFolder(at("q/sub/more"))])
    assert done == ["done", "done"]
    assert sorted(path.name for path in (tmp_path / ".config/sub").iterdir()) == ["more", "notes.txt"]
