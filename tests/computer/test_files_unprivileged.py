"""What an ordinary user may not do: the system's refusals have their code, and say nothing of the host."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from computer_linker.computer.facets.files import MakeFolder, Move, Remove, Window, Write
from computer_linker.computer.local.portable.files import LocalFiles
from computer_linker.errors import LinkError
from computer_linker.model.paths import PathRules, RootedPath

pytestmark = pytest.mark.anyio
NOBODY = 65534


@pytest.fixture
async def home() -> AsyncIterator[Path]:
    """A folder of an ordinary user, who is the one acting while the test runs."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o755)
    os.seteuid(NOBODY)
    yield folder
    os.seteuid(0)
    shutil.rmtree(folder)


def at(root: Path, name: str) -> RootedPath:
    return RootedPath(str(root), tuple(name.split("/")), PathRules())


async def at_once() -> None:
    return None


async def test_a_file_without_read_permission_is_refused_without_a_host_path(home: Path) -> None:
    (home / "no").write_text("x")
    (home / "no").chmod(0)
    (home / "closed").mkdir()
    (home / "closed" / "f").write_text("x")
    (home / "closed").chmod(0)
    files = LocalFiles()
    for name in ("no", "closed/f"):
        with pytest.raises(LinkError) as caught:
            await files.read(at(home, name), Window(10))
        assert caught.value.code == "os_permission_required"
        assert str(home) not in caught.value.message + str(caught.value.details)
    tree = await files.tree(RootedPath(str(home), (), PathRules()), max_depth=9, max_entries=9, gitignore=True)
    assert [entry["path"] for entry in tree.entries] == ["closed", "no"] and tree.warnings
    (home / "closed").chmod(0o755)
    await files.aclose()


async def test_read_only_files_and_folders_stay_as_they_are(home: Path) -> None:
    (home / "fixed").write_text("old")
    (home / "fixed").chmod(0o444)
    (home / "d").mkdir()
    (home / "d" / "f").write_text("old")
    (home / "d").chmod(0o555)
    files = LocalFiles()
    for change in (
        Write(at(home, "fixed"), b"new"),
        Write(at(home, "d/new"), b"new"),
        Write(at(home, "d/f"), b"new"),
        Remove(at(home, "d/f")),
        MakeFolder(at(home, "d/e")),
        Move(at(home, "d/f"), at(home, "g")),
    ):
        with pytest.raises(LinkError) as caught:
            await files.change([change], gate=at_once)
        assert caught.value.code == "os_permission_required", change
    assert (home / "fixed").read_text() == "old" and (home / "d" / "f").read_text() == "old"
    assert sorted(os.listdir(home)) == ["d", "fixed"] and os.listdir(home / "d") == ["f"]
    (home / "d").chmod(0o755)
    await files.aclose()


async def test_another_users_file_is_replaced_with_a_warning(home: Path) -> None:
    os.seteuid(0)
    (home / "theirs").write_text("old")
    (home / "theirs").chmod(0o666)
    os.seteuid(NOBODY)
    files = LocalFiles()
    done = await files.change([Write(at(home, "theirs"), b"new")], gate=at_once)
    assert done[0].is_confirmed and "belongs" in done[0].warnings[0]
    assert (home / "theirs").read_text() == "new"
    await files.aclose()
