"""Children of the providers: read whole, fenced, and gone when nobody waits for them."""

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from computer_linker.computer.local.linux.fence import Fence, fence_around
from computer_linker.errors import InvalidRequest
from computer_linker.policy.writers import find_program
from computer_linker.providers.child import ProcessGroup, Spec, in_process_group, loaders, without_links
from support.children import children_of_this_process

pytestmark = pytest.mark.anyio
_MOUNTS = "from computer_linker.computer.local.linux.no_links import _own_mounts; _own_mounts()"
_UNSHARE, _OPEN_TREE, _MOUNT_SETATTR = 272 if platform.machine() == "x86_64" else 97, 428, 442
CAN_MOUNT = sys.platform == "linux" and subprocess.run([sys.executable, "-c", _MOUNTS], check=False).returncode == 0


def said(argv: list[str], group: ProcessGroup | None = None, **parts: object) -> tuple[int, bytes, bytes]:
    with (group or ProcessGroup()).running(Spec(argv, "/", {}, **parts)) as child:  # type: ignore[arg-type]  # as the caller says
        out, _ = child.read_all(1 << 20)
        code, err = child.finish()
    return code, out, err


async def test_output_errors_and_exit_code_come_back() -> None:
    assert said(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]) == (3, b"out\n", b"err\n")
    assert said(["/bin/cat"], stdin=b"fed" * 100_000) == (0, b"fed" * 100_000, b"")


async def test_a_flood_on_stderr_blocks_nobody() -> None:
    code, out, err = said(["/bin/sh", "-c", "head -c 5000000 /dev/zero >&2; echo done"])
    assert (code, out, len(err)) == (0, b"done\n", 65_536)


async def test_what_a_child_left_behind_ends_with_it() -> None:
    code, out, _ = said(["/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"])
    assert code == 0
    with anyio.fail_after(60):
        while Path(f"/proc/{int(out)}").exists() and "Z" not in Path(f"/proc/{int(out)}/stat").read_text().split()[2]:
            await anyio.lowlevel.checkpoint()


async def test_cancelling_ends_the_child_before_the_caller_goes_on() -> None:
    def work(group: ProcessGroup) -> object:
        return said(["/bin/sleep", "600"], group)

    with anyio.move_on_after(0.2) as scope:
        await in_process_group(work)
    assert scope.cancelled_caught
    assert children_of_this_process() == []


async def test_a_call_cancelled_while_it_waits_for_its_turn_never_starts() -> None:
    limiter = anyio.CapacityLimiter(1)
    started: list[str] = []
    limiter.acquire_on_behalf_of_nowait("another")
    with anyio.move_on_after(0.05) as scope:
        await in_process_group(lambda group: started.append("ran"), limiter)
    assert scope.cancelled_caught and started == []


async def test_a_failure_comes_back_as_it_is() -> None:
    def work(group: ProcessGroup) -> None:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        await in_process_group(work)


async def test_programs_are_not_found_through_the_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "very-odd-program").write_text("#!/bin/sh\n")
    (tmp_path / "very-odd-program").chmod(0o755)
    # The environment of the service itself is the input here.
    monkeypatch.setenv("PATH", f"{tmp_path}:.:" + os.environ["PATH"])
    assert find_program("very-odd-program") is None


async def test_a_fence_holds_reading_writing_and_executing_and_only_for_the_child(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("secret")
    (inside / "note").write_text("note")
    loader = [str(path) for folder in ("/lib64", "/lib") for path in Path(folder).glob("ld-*.so*")]
    enter = fence_around(
        Fence(
            ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", str(inside)], [], [os.path.realpath("/usr/bin/cat"), *loader]
        )
    )
    if enter is None:
        pytest.skip("this kernel has no Landlock")
    assert said(["/usr/bin/cat", str(inside / "note")], enter=enter)[:2] == (0, b"note")
    assert said(["/usr/bin/cat", str(outside)], enter=enter)[:2] == (1, b"")
    with pytest.raises(PermissionError):
        said(["/usr/bin/touch", str(inside / "made")], enter=enter)
    assert not (inside / "made").exists()
    assert outside.read_text() == "secret"
    assert said(["/usr/bin/cat", str(outside)])[1] == b"secret"


async def test_no_link_below_a_held_folder_leads_anywhere_for_the_child(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (inside / "note").write_text("note")
    (inside / "link").symlink_to("note")
    (inside / "way").symlink_to("folder")
    held = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    fence = Fence(["/usr", "/lib", "/lib64", "/etc/ld.so.cache", held], [held], ["/usr/bin", *loaders()])

    def tried(*argv: str) -> tuple[int, bytes]:
        spec = without_links(Spec(argv, f"/proc/self/fd/{held}", {}), fence)
        with ProcessGroup().running(spec) as child:
            out = child.read_all(1000)[0]
            return child.finish()[0], out

    try:
        assert tried("/usr/bin/cat", "note") == (0, b"note")
        assert tried("/usr/bin/cat", str(inside / "note")) == (0, b"note")
        if not CAN_MOUNT:
            pytest.skip("this user can make no mounts here")
        for place in ("link", str(inside / "link"), "way/../note"):
            assert tried("/usr/bin/cat", place) == (1, b"")
        assert tried("/usr/bin/touch", "way/made")[0] == 1 and not (inside / "folder" / "made").exists()
        assert tried("/usr/bin/touch", "folder/made")[0] == 0 and (inside / "folder" / "made").exists()
        assert tried("/usr/bin/readlink", "link") == (0, b"note\n")
    finally:
        os.close(held)
    # Only for the child.
    assert (inside / "link").read_text() == "note"


async def test_a_folder_that_was_moved_is_not_taken_for_another(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    held = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        spec = without_links(
            Spec(["/usr/bin/touch", "made"], "/", {}), Fence(["/usr", held], ["/"], ["/usr", "/lib64"])
        )
        inside.rmdir()
        inside.mkdir()
        with ProcessGroup().running(spec) as child:
            code, said = child.finish()
    finally:
        os.close(held)
    if CAN_MOUNT:
        assert (code, said) == (128, b"fatal: the folder changed while it was opened\n")


def refuse(call: int, number: int) -> None:
    """Have the kernel refuse a system call to this thread and what it starts (seccomp)."""
    steps = ((0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | number), (0x06, 0, 0, 0x7FFF0000))
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(filters)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()


def read_by_link(folder: Path, call: int, number: int) -> tuple[int, bytes, bytes]:
    """What a program prints that reads a link below a held folder, where the kernel refuses a system call."""
    (folder / "note").write_text("note")
    (folder / "link").symlink_to("note")
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fence = Fence(["/usr", "/lib", "/lib64", "/etc/ld.so.cache", held], [], ["/usr/bin", *loaders()])
        spec = without_links(Spec(["/usr/bin/cat", "link"], f"/proc/self/fd/{held}", {}), fence)
        with ProcessGroup().running(replace(spec, enter=partial(refuse, call, number))) as child:
            out = child.read_all(1000)[0]
            code, err = child.finish()
            return code, out, err
    finally:
        os.close(held)


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is of Linux")
@pytest.mark.parametrize(
    ("call", "number"),
    [(_UNSHARE, errno.ENOSPC), (_UNSHARE, errno.EACCES), (_UNSHARE, errno.EPERM),
     (_MOUNT_SETATTR, errno.EINVAL), (_MOUNT_SETATTR, errno.ENOSYS), (_OPEN_TREE, errno.ENOSYS)],
    ids=["no-namespaces", "security-module", "no-right", "no-nosymfollow", "old-kernel", "no-mount-calls"],
)  # fmt: skip
async def test_where_no_mounts_can_be_made_the_child_runs_without(tmp_path: Path, call: int, number: int) -> None:
    """Found: where user namespaces are turned off, git failed with "the folder changed while it was opened"."""
    assert read_by_link(tmp_path, call, number) == (0, b"note", b"")


@pytest.mark.skipif(not CAN_MOUNT, reason="this user can make no mounts here")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EPERM, errno.EACCES])
async def test_a_folder_that_cannot_be_mounted_is_not_read_through_links(tmp_path: Path, number: int) -> None:
    """Found: the child ran and followed links."""
    assert read_by_link(tmp_path, _OPEN_TREE, number) == (128, b"", b"fatal: links could not be disabled\n")
