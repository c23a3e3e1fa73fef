"""Protected names planted in a folder that the command then makes unreadable, as a user who is not the superuser."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.providers.sandbox.boundary import Folder
from computer_linker.providers.sandbox.planted import Planting, Plantings
from computer_linker.providers.sandbox.tree import Tree
from computer_linker.providers.sandbox.tree_cache import TreeCache

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="becoming another user needs root"),
]
OTHER = 65534


class Ground:
    """A root of another user, in which a command runs."""

    def __init__(self, top: Path, *, watched: bool) -> None:
        self.root, self.state = top / "root", top / "state"
        self.top = top
        self.trees = TreeCache()
        self.watched = watched

    def begin(self) -> None:
        """Look, and start a command that may write everything."""
        self.folder = Folder(os.open(self.root, os.O_RDONLY), str(self.root))
        self.tree: Tree = self.trees.tree(self.folder)
        if not self.watched:
            self.tree.close()
        os.seteuid(OTHER)
        self.tree.scan(self.folder.fd)
        self.plantings = Plantings(self.state)
        self.planting: Planting = self.plantings.begin(leaves_orphans=False)
        self.plantings.watch(self.planting, self.folder, self.tree, [], may_plant=True)

    def look(self) -> list[str]:
        self.plantings.scan(self.folder, self.tree, self.folder.fd)
        return self.planting.refused

    def close(self) -> None:
        os.seteuid(0)
        self.trees.close()


@pytest.fixture(params=["watched", "asked"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    # Where another user may pass.
    above = tmp_path
    while above != Path(tempfile.gettempdir()):
        above.chmod(0o755)
        above = above.parent
    made = Ground(tmp_path, watched=request.param == "watched")
    for place in (made.state, made.root, made.root / "sub", made.root / "sub" / "in"):
        place.mkdir()
        os.chown(place, OTHER, OTHER)
    yield made
    made.close()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("shut", [0, 0o100, 0o300, 0o400, 0o600])
async def test_a_name_in_a_folder_that_was_shut_is_taken_away(ground: Ground, shut: int) -> None:
    ground.begin()
    (ground.root / "sub" / "in" / ".vscode").mkdir()
    (ground.root / "sub" / "in" / ".vscode" / "tasks.json").write_text("EVIL")
    (ground.root / "sub" / ".mcp.json").write_text("EVIL")
    (ground.root / "sub" / "in").chmod(shut)
    (ground.root / "sub").chmod(shut)
    refused = ground.look()
    assert mode(ground.root / "sub") == shut
    os.seteuid(0)
    assert mode(ground.root / "sub" / "in") == shut
    assert os.listdir(ground.root / "sub") == ["in"] and os.listdir(ground.root / "sub" / "in") == [], refused
    assert len(refused) == 2 and all("kept in" in sentence for sentence in refused)
    os.seteuid(OTHER)
    assert ground.look() == refused, "nothing is told twice"


async def test_a_root_that_was_shut_is_looked_at(ground: Ground) -> None:
    ground.begin()
    (ground.root / ".vscode").mkdir()
    ground.root.chmod(0)
    assert len(ground.look()) == 1
    assert mode(ground.root) == 0
    os.seteuid(0)
    assert os.listdir(ground.root) == ["sub"]


async def test_a_folder_that_was_renamed_and_shut_is_looked_at(ground: Ground) -> None:
    ground.begin()
    (ground.root / "sub").rename(ground.root / "t")
    (ground.root / "t" / ".vscode").mkdir()
    (ground.root / "t").chmod(0)
    assert len(ground.look()) == 1
    os.seteuid(0)
    assert os.listdir(ground.root / "t") == ["in"]


async def test_a_folder_that_was_shut_before_is_left_alone(ground: Ground) -> None:
    (ground.root / "sub" / ".vscode").mkdir()
    (ground.root / "sub").chmod(0)
    changed = (ground.root / "sub").stat().st_ctime_ns
    ground.begin()
    (ground.root / "other").mkdir()
    assert ground.look() == []
    assert (ground.root / "sub").stat().st_ctime_ns == changed
