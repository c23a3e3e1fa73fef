"""The look: every folder, each change, at the cost of what changed; the same with and without watches."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.model.paths import PathRules
from computer_linker.policy import names
from computer_linker.policy.names import is_protected, is_sensitive
from computer_linker.providers.sandbox.boundary import Folder
from computer_linker.providers.sandbox.judge import may_matter
from computer_linker.providers.sandbox.masks import Masks, known_masks
from computer_linker.providers.sandbox.tree import MAX_FOLDERS, Tree
from computer_linker.providers.sandbox.tree_cache import TreeCache

NOBODY = 65534


class Ground:
    """A root that is looked at."""

    def __init__(
        self, root: Path, rules: PathRules = PathRules(), *, watched: bool = True, max_folders: int = MAX_FOLDERS
    ) -> None:
        self.root = root
        self.folder = Folder(os.open(root, os.O_RDONLY), str(root), rules)
        self.trees = TreeCache(max_folders)
        self.tree: Tree = self.trees.tree(self.folder)
        if not watched:
            self.tree.close()

    def masks(self, *, most: int = 512) -> Masks:
        self.tree.scan(self.folder.fd)
        return known_masks(self.folder, self.tree, most=most)

    def closed(self, most: int = 512) -> dict[str, str]:
        masks = self.masks(most=most)
        return {"/".join(each.parts): each.how for each in masks.closed}

    def close(self) -> None:
        self.trees.close()
        os.close(self.folder.fd)


@pytest.fixture(params=["watched", "asked"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    (tmp_path / "root").mkdir()
    made = Ground(tmp_path / "root", watched=request.param == "watched")
    assert made.tree.is_watched == (request.param == "watched")
    yield made
    made.close()


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_change_is_seen(ground: Ground) -> None:
    root = ground.root
    assert ground.closed() == {}
    put(root / "a" / "b" / ".env")
    assert ground.closed() == {"a": "held", "a/b": "held", "a/b/.env": "hidden"}
    (root / "a").rename(root / "node_modules")
    assert ground.closed() == {"node_modules": "held", "node_modules/b": "held", "node_modules/b/.env": "hidden"}
    (root / "x" / ".vscode").mkdir(parents=True)
    (root / "node_modules" / "b").rename(root / "x" / ".vscode" / "b")
    assert ground.closed() == {"x": "held", "x/.vscode": "read_only", "x/.vscode/b/.env": "hidden"}
    put(root / "x" / ".vscode" / "b" / "c" / "id_rsa")
    assert ground.closed()["x/.vscode/b/c/id_rsa"] == "hidden"
    (root / "x" / ".vscode" / "b" / ".env").unlink()
    assert "x/.vscode/b/.env" not in ground.closed()
    shutil.rmtree(root / "x")
    assert ground.closed() == {}


def test_a_folder_that_takes_the_place_of_another_is_looked_into(ground: Ground) -> None:
    root = ground.root
    put(root / "a" / "plain")
    put(root / "b" / "c" / ".env")
    assert "b/c/.env" in ground.closed()
    for _ in range(3):
        (root / "a").rename(root / "t")
        (root / "b").rename(root / "a")
        (root / "t").rename(root / "b")
        there = "a" if (root / "a" / "c").exists() else "b"
        assert ground.closed() == {there: "held", f"{there}/c": "held", f"{there}/c/.env": "hidden"}
        put(root / there / "c" / "d" / "server.key")
        assert f"{there}/c/d/server.key" in ground.closed()
        shutil.rmtree(root / there / "c" / "d")
        assert f"{there}/c/d/server.key" not in ground.closed()


def test_a_number_used_again_is_another_folder(ground: Ground) -> None:
    for number in range(20):
        (ground.root / "d").mkdir()
        ground.closed()
        put(ground.root / "d" / f"{number}.key")
        assert ground.closed() == {"d": "held", f"d/{number}.key": "hidden"}
        shutil.rmtree(ground.root / "d")


def test_more_events_than_the_queue_holds_are_no_loss(tmp_path: Path) -> None:
    (tmp_path / "root" / "a").mkdir(parents=True)
    ground = Ground(tmp_path / "root")
    ground.closed()
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    names_ = [str(ground.root / "a" / name) for name in "xy"]
    put(ground.root / "a" / "x")
    for number in range(most // 2 + 10):
        os.rename(names_[number % 2], names_[1 - number % 2])
    put(ground.root / "late" / ".env")
    assert ground.closed() == {"late": "held", "late/.env": "hidden"}
    assert ground.tree.is_watched
    put(ground.root / "late" / "x.key")
    assert "late/x.key" in ground.closed()
    ground.close()


def test_a_repeated_look_asks_nothing(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / "root" / str(number)).mkdir(parents=True)
    ground = Ground(tmp_path / "root")
    first = ground.masks()
    assert ground.tree.is_quiet()
    assert known_masks(ground.folder, ground.tree) is first
    (ground.root / "1" / "f").touch()
    assert not ground.tree.is_quiet()
    ground.masks()
    assert ground.tree.is_quiet()
    ground.close()


def test_known_folders_stay_in_sight_in_a_flood(tmp_path: Path) -> None:
    """A command could otherwise push a secret out of the bounds, and read it the next time."""
    put(tmp_path / "root" / "z" / "deep" / ".env")
    ground = Ground(tmp_path / "root", max_folders=50)
    ground.closed()
    for number in range(100):
        (ground.root / f"a{number}").mkdir()
    masks = ground.masks()
    assert masks.is_partial and any("too large" in warning for warning in masks.warnings)
    assert ("z", "deep", ".env") in {each.parts for each in masks.closed}
    for number in range(100):
        (ground.root / f"a{number}").rmdir()
    assert not ground.masks().is_partial
    ground.close()


def test_what_is_too_deep_is_named(tmp_path: Path) -> None:
    (tmp_path / "root" / "/".join("x" * 70)).mkdir(parents=True)
    ground = Ground(tmp_path / "root")
    masks = ground.masks()
    assert masks.is_partial and "x/x/x" in masks.warnings[0]
    ground.close()


def test_a_flood_of_files_hides_no_closed_name(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    folder = Folder(os.open(root, os.O_RDONLY), str(root))
    tree = Tree(folder, max_entries=10)
    tree.scan(folder.fd)
    tree.running[object()] = tree.number
    for number in range(100):
        (root / f"f{number}").touch()
        (root / f"f{number}" if number % 7 else root / ".vscode").touch()
        put(root / "d" / f"{number}")
    put(root / ".env")
    tree.scan(folder.fd)
    assert {entry.name for entry in tree.folders[()].found} == {".vscode", ".env"}
    assert [parts for parts, _ in tree.fresh] == [(".vscode",)] and tree.partly_read()
    tree.close()
    os.close(folder.fd)


def test_a_folder_that_cannot_be_read_is_hidden(tmp_path: Path) -> None:
    """A command has the same rights as the service: it could make the folder readable first."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    root = tmp_path / "root"
    for mode, name in ((0, "shut"), (0o600, "unsearchable"), (0o300, "unlisted")):
        put(root / name / ".env")
        put(root / name / "sub" / ".env")
        for path in (root, root / name, *(root / name).rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        (root / name).chmod(mode)
    ground = Ground(root)
    os.seteuid(NOBODY)
    try:
        assert ground.closed() == {"shut": "hidden", "unsearchable": "hidden", "unlisted": "hidden"}
        os.chmod("shut", 0o755, dir_fd=ground.folder.fd)
        assert {"shut": "held", "shut/.env": "hidden"}.items() <= ground.closed().items()
    finally:
        os.seteuid(0)
        ground.close()


@pytest.mark.parametrize("mode", [0, 0o300, 0o400, 0o600])
def test_a_root_that_cannot_be_read_is_hidden_and_loses_nothing(tmp_path: Path, mode: int) -> None:
    """What a command closed and opened again was there all the time: it is not taken for planted."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    root = tmp_path / "root"
    put(root / ".env")
    put(root / "sub" / ".git" / "config")
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    ground = Ground(root)
    os.seteuid(NOBODY)
    try:
        open_root = {".env": "hidden", "sub": "held", "sub/.git": "read_only"}
        assert ground.closed() == open_root
        ground.tree.running[object()] = ground.tree.number
        os.mkdir("more", dir_fd=ground.folder.fd)
        os.fchmod(ground.folder.fd, mode)
        assert ground.closed() == {"": "hidden"}
        os.fchmod(ground.folder.fd, 0o755)
        assert ground.closed() == open_root and not ground.tree.fresh
    finally:
        os.seteuid(0)
        ground.close()


def test_closed_names_carry_their_identity_shallow_first(tmp_path: Path) -> None:
    put(tmp_path / "root" / "a" / "b" / ".git" / "config")
    ground = Ground(tmp_path / "root", PathRules(denied=("c/private",)))
    (ground.root / "c" / "private").mkdir(parents=True)
    closed = ground.masks().closed
    assert [(each.parts, each.how, each.is_folder) for each in closed] == [
        (("a",), "held", True),
        (("c",), "held", True),
        (("a", "b"), "held", True),
        (("c", "private"), "hidden", True),
        (("a", "b", ".git"), "read_only", True),
    ]
    for each in closed:
        found = ground.root.joinpath(*each.parts).stat()
        assert (each.device, each.inode) == (found.st_dev, found.st_ino)
    ground.close()


@pytest.mark.parametrize(
    "made, expected",
    [
        ({"many/r{}/.git/config": 300, "few/a/.git/config": 1}, {"many": "read_only", "few/a/.git": "read_only"}),
        ({"a/x{}/.git/c": 90, "b/x{}/.git/c": 90}, {"a": "read_only", "b": "read_only"}),
        ({"certs/{}.key": 300, "few/.env": 1}, {"certs": "hidden", "few/.env": "hidden"}),
        ({"m/r{}/.git/c": 200, "m/k/.env": 1}, {"m": "read_only", "m/k/.env": "hidden"}),
        ({"r{}/.git/config": 300, "r1/.env": 1}, {"": "read_only", "r1/.env": "hidden"}),
        ({".vscode/{}.key": 300}, {".vscode": "hidden"}),
        ({"m/p/q/{}.key": 300, "m/r{}/.git/c": 200}, {"m/p/q": "hidden"}),
    ],
)
def test_what_is_too_much_closes_its_folder(tmp_path: Path, made: dict[str, int], expected: dict[str, str]) -> None:
    for path, count in made.items():
        for number in range(count):
            put(tmp_path / "root" / path.format(number))
    ground = Ground(tmp_path / "root")
    masks = ground.masks(most=100)
    closed = {"/".join(each.parts): each.how for each in masks.closed}
    assert len(closed) <= 100 and masks.warnings and not masks.is_partial
    assert expected.items() <= closed.items()
    assert not _left_open(ground, masks)
    ground.close()


def _left_open(ground: Ground, masks: Masks) -> list[tuple[str, ...]]:
    """Names that should be closed and are not, by asking every path there is."""
    how = {each.parts: each.how for each in masks.closed}
    found = []
    for path in ground.root.rglob("*"):
        parts = path.relative_to(ground.root).parts
        above = {how.get(parts[:size]) for size in range(len(parts) + 1)}
        is_open = is_sensitive(parts) and "hidden" not in above
        if is_open or (is_protected(parts) and not above & {"hidden", "read_only"}):
            found.append(parts)
    return found


def test_the_quick_test_of_a_name_leaves_nothing_out() -> None:
    """Every word of the tables, alone and below every other: what is closed passes the quick test."""
    words = {word for path in names.PROTECTED_PATHS for word in path} | names.PROTECTED_NAMES | names.SENSITIVE_NAMES
    words |= {".docker", "config.json", "gcloud", "gh", "credentials", "x.pem", ".env.local", ".ENV", "ID_RSA"}
    for above in sorted(words):
        for name in sorted(words | {"plain.txt", "src"}):
            parts = (above, name)
            if (is_protected(parts) and not is_protected(parts[:1])) or is_sensitive(parts):
                assert may_matter(name) or is_sensitive(parts[:1]), parts
    for path in names.PROTECTED_PATHS:
        assert may_matter(path[-1])
