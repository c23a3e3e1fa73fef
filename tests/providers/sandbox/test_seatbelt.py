"""The macOS profile as text: what it opens, what it closes afterwards, and that no path can write rules of its own."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.model.paths import PathRules
from computer_linker.policy.names import PROTECTED_NAMES
from computer_linker.providers.sandbox import seatbelt
from computer_linker.providers.sandbox.boundary import Confinement, Folder
from computer_linker.providers.sandbox.masks import known_masks
from computer_linker.providers.sandbox.tree import Tree
from support.waiting import until


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    root = tmp_path / "root.d"
    root.mkdir()
    fd = os.open(root, os.O_RDONLY)
    yield Folder(fd, str(root))
    os.close(fd)


def test_everything_is_denied_first_and_the_roots_are_opened(folder: Folder) -> None:
    lines = seatbelt.profile(Confinement(writable=(folder,)), "/private/tmp/x", {}).splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert f'(allow file-read* file-write* (subpath "/private/tmp/x") (subpath "{folder.path}"))' in lines
    assert not any("network" in line for line in lines)


def test_the_network_is_opened_only_when_asked(folder: Folder) -> None:
    assert "(allow network* system-socket)" in seatbelt.profile(Confinement(network=True), "/p", {})


def test_secrets_protected_names_and_the_state_are_closed_after_the_root(folder: Folder) -> None:
    (Path(folder.path) / ".env").write_text("x")
    (Path(folder.path) / ".git").mkdir()
    tree = Tree(folder)
    tree.scan(folder.fd)
    masks = {folder: known_masks(folder, tree)}
    tree.close()
    profile = seatbelt.profile(Confinement(writable=(folder,), hidden=("/home/me/state",)), "/p", masks)
    opened = profile.index("(allow file-read* file-write*")
    for closed in (
        f'(deny file-read* file-write* (subpath "{folder.path}/.env"))',
        f'(deny file-write* (subpath "{folder.path}/.git"))',
        '(deny file-read* file-write* (subpath "/home/me/state"))',
    ):
        assert profile.index(closed) > opened


@pytest.mark.parametrize("name", sorted(PROTECTED_NAMES))
def test_a_protected_name_is_closed_at_any_depth_in_any_case(folder: Folder, name: str) -> None:
    pattern = re.compile(seatbelt.protected_names(folder))
    for path in (name, name.upper(), f"a/b/{name}", f"{name}/hooks/x"):
        assert pattern.fullmatch(f"{folder.path}/{path}")
    for path in (f"{name}x", f"x{name}", "plain.txt"):
        assert not pattern.fullmatch(f"{folder.path}/{path}")
    assert not pattern.fullmatch(f"{folder.path.replace('.', '_')}/{name}")


def test_a_scope_that_allows_protected_names_has_them_open(folder: Folder) -> None:
    opened = Folder(folder.fd, folder.path, PathRules(allow_protected=True))
    assert seatbelt.protected_names(folder) in seatbelt.profile(Confinement(writable=(folder,)), "/p", {})
    assert seatbelt.protected_names(folder) not in seatbelt.profile(Confinement(writable=(opened,)), "/p", {})


@pytest.mark.parametrize("name", ['a")(allow default)("', 'b" (allow network*) "', "back\\slash", "new\nline"])
def test_a_path_cannot_write_rules(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    fd = os.open(root, os.O_RDONLY)
    try:
        text = seatbelt.profile(Confinement(writable=(Folder(fd, str(root)),)), "/p", {})
    finally:
        os.close(fd)
    assert _outside_strings(text).count("(allow default)") == 0 and "network" not in _outside_strings(text)
    assert re.compile(seatbelt.protected_names(Folder(0, str(root))), re.DOTALL).fullmatch(f"{root}/.git")


@pytest.mark.anyio
async def test_the_argv_follows_untouched(folder: Folder) -> None:
    plan, env = seatbelt.wrap(("/bin/echo", "-p", "a b"), Confinement(writable=(folder,), cwd_fd=folder.fd))
    assert plan.argv[:2] == (seatbelt.PROGRAM, "-p") and plan.argv[3:] == ("/bin/echo", "-p", "a b")
    private = Path(env["TMPDIR"])
    assert private.is_dir()
    plan.release()
    await until(lambda: not private.exists())


def _outside_strings(text: str) -> str:
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', re.sub(r'#"[^"]*"', '""', text))
