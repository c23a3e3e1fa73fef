"""The resolver: openat2 and the descriptor walk agree with a model of the file system, and with each other."""

import errno
import os
import posixpath
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from computer_linker.computer.local.faults import FAULTS, fault
from computer_linker.computer.local.portable.files.open import READ, Opener
from computer_linker.computer.local.portable.openat2 import openat2_works
from computer_linker.computer.local.portable.roots import Roots
from computer_linker.errors import ExecutionFailed, LinkError
from computer_linker.model.paths import PathRules, RootedPath

_OPEN_RULES = PathRules(allow_sensitive=True, allow_protected=True)

NAME = st.sampled_from(["a", "b", "c"])
TARGET = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=4).map("/".join)
LINK = TARGET | st.just("/") | TARGET.map(lambda text: "/" + text)
TREE = st.lists(
    st.tuples(st.lists(NAME, min_size=1, max_size=3), st.one_of(st.just("file"), st.just("folder"), LINK)), max_size=10
)


def build(root: Path, tree: list[tuple[list[str], str]]) -> None:
    root.mkdir()
    for parts, kind in tree:
        path = root.joinpath(*parts)
        if any(above.is_symlink() for above in path.parents) or path.is_symlink() or path.exists():
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "file":
                path.write_text("/".join(parts))
            elif kind == "folder":
                path.mkdir()
            else:
                path.symlink_to(kind)
        except (FileExistsError, NotADirectoryError):
            continue


def model(root: Path, parts: tuple[str, ...]) -> str:
    """What opening must give, worked out name by name over plain facts: a file's content, `out`, or `no`."""
    at: list[str] = []
    todo = list(parts)
    for _ in range(500):
        if not todo:
            break
        name = todo.pop(0)
        if name in ("", "."):
            if not root.joinpath(*at).is_dir():
                return "no"
            continue
        if name == "..":
            if not at:
                return "out"
            at.pop()
            continue
        here = root.joinpath(*at, name)
        if not os.path.lexists(here):
            return "no"
        if here.is_symlink():
            target = os.readlink(here)
            if target.startswith("/"):
                return "out"
            todo = target.split("/") + todo
            continue
        if todo and not here.is_dir():
            return "no"
        at.append(name)
    else:
        return "loop"
    found = root.joinpath(*at)
    return found.read_text() if found.is_file() else "no"


def opened(opener: Opener, root: Path, parts: tuple[str, ...]) -> str:
    try:
        descriptor, _, real = opener.open_regular(RootedPath(str(root), parts, _OPEN_RULES))
    except LinkError as error:
        return {"path_out_of_scope": "out"}.get(error.code, "no")
    try:
        content = os.read(descriptor, 1000).decode()
    finally:
        os.close(descriptor)
    assert content == "/".join(real.parts)
    return content


@pytest.mark.skipif(not openat2_works(), reason="the kernel has no openat2, or a filter forbids it")
@given(TREE, st.lists(st.lists(NAME, min_size=1, max_size=4).map(tuple), min_size=1, max_size=8))
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_both_ways_of_opening_agree_with_the_model(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[list[str], str]], targets: list[tuple[str, ...]]
) -> None:
    root = tmp_path_factory.mktemp("oracle") / "a"
    build(root, tree)
    (root.parent / "b").write_text("outside")
    roots = Roots()
    kernel, walk = Opener(roots, by_kernel=True), Opener(roots, by_kernel=False)
    try:
        for parts in targets:
            expected = model(root, parts)
            got = (opened(kernel, root, parts), opened(walk, root, parts))
            if expected == "loop":
                assert set(got) <= {"out", "no"}
            else:
                assert got == (expected, expected), (parts, expected, got)
            assert "outside" not in got
    finally:
        roots.close()


@pytest.mark.skipif(not openat2_works(), reason="the kernel has no openat2, or a filter forbids it")
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("b/../c", "no"),
        ("b/../a", "no"),
        ("b/.", "no"),
        ("b/", "no"),
        ("d/../c", "c"),
        ("d/./../c", "c"),
        ("d//e/.", "no"),
    ],
)
def test_a_file_is_no_folder_on_the_way_of_a_link(tmp_path: Path, target: str, expected: str) -> None:
    root = tmp_path / "root"
    build(root, [(["b"], "file"), (["c"], "file"), (["d", "e"], "folder"), (["a"], target)])
    roots = Roots()
    try:
        for by_kernel in (True, False):
            assert opened(Opener(roots, by_kernel=by_kernel), root, ("a",)) == expected
    finally:
        roots.close()


@pytest.mark.parametrize("by_kernel", [True, False])
def test_no_descriptor_is_left_open(tmp_path: Path, by_kernel: bool) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f").write_text("d/e/f")
    (tmp_path / "ln").symlink_to("d/e")
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "round").symlink_to("round")
    opener = Opener(Roots(), by_kernel=by_kernel)
    opener.stat(RootedPath(str(tmp_path), ("d",), _OPEN_RULES))
    before = len(os.listdir("/proc/self/fd"))
    for parts in (("ln", "f"), ("out", "passwd"), ("round",), ("gone",), ("d", "e", "f", "g"), ("d",), ("ln",)):
        path = RootedPath(str(tmp_path), parts, _OPEN_RULES)
        opened(opener, tmp_path, parts)
        for act in (opener.stat, opener.place, opener.followed_place):
            try:
                result = act(path)
            except LinkError:
                continue
            if hasattr(result, "close"):
                result.close()
    assert len(os.listdir("/proc/self/fd")) == before
    opener.roots.close()


def test_a_pipe_without_a_writer_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    opener = Opener(Roots())
    descriptor, _ = opener.open(RootedPath(str(tmp_path), ("p",), _OPEN_RULES), READ)
    os.close(descriptor)
    with pytest.raises(LinkError):
        opener.open_regular(RootedPath(str(tmp_path), ("p",), _OPEN_RULES))
    opener.roots.close()


@pytest.mark.parametrize("number", sorted(FAULTS))
def test_every_listed_os_error_has_a_sentence_and_no_host_path(number: int) -> None:
    found = fault(OSError(number, os.strerror(number), "/host/secret/path"), "a/b.txt")
    assert "a/b.txt" in found.message and "/host" not in found.message + str(found.details)
    assert found.details["errno"] == errno.errorcode[number]


def test_an_unlisted_os_error_is_an_execution_failure() -> None:
    assert isinstance(fault(OSError(9999, "?"), "x"), ExecutionFailed)
    assert posixpath.basename(fault(OSError(errno.EHOSTUNREACH, "?"), "x").message)
