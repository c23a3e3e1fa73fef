"""Slots where the system refuses a control group: nothing runs without its limits, and what runs stays known."""

import os
import subprocess
import sys

import pytest

from computer_linker.computer.local.linux.control_groups import TOP

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not os.path.isdir(f"{TOP}/pids"),
    reason="mounting over a control group needs root and cgroup v1",
)

_REFUSED = """
import ctypes, errno, os, socket, sys, time
from computer_linker.computer.local.linux.control_groups import TOP
from computer_linker.computer.local.linux.slots import Slots

libc = ctypes.CDLL(None, use_errno=True)
BIND, REMOUNT, RDONLY, REC, PRIVATE = 4096, 32, 1, 16384, 1 << 18
def mount(flags, path=TOP + "/pids"):
    if libc.mount(path.encode(), path.encode(), None, flags, None) != 0:
        raise OSError(ctypes.get_errno(), path)

os.unshare(0x20000) if hasattr(os, "unshare") else libc.unshare(0x20000)
mount(REC | PRIVATE, "/")
slots = Slots(socket.socketpair()[0])
if slots.groups is None:
    print("none"), sys.exit()
try:
    slot = slots.take("a")
    slot.is_free, slot.is_used = False, True
    stray = os.fork()
    if stray == 0:
        time.sleep(60)
        os._exit(0)
    assert slots.groups.enter(slot.name, stray)
    mount(BIND)
    mount(BIND | REMOUNT | RDONLY)
    for client in ("b", "a", "b"):
        try:
            slots.take(client)
            print("taken")
        except OSError as error:
            print(errno.errorcode[error.errno])
    print("groups" if slots.groups is not None else "lost", len(slots.by_anchor), slots.of(stray) == slot.name)
    slots.end(slot)
    print(os.waitstatus_to_exitcode(os.waitpid(stray, 0)[1]))
    mount(BIND | REMOUNT)
    print(slots.take("b").client, len(slots.by_anchor))
finally:
    libc.umount2((TOP + "/pids").encode(), 2)
    slots.close()
"""


def test_a_group_that_cannot_be_made_refuses_the_command_and_keeps_the_others() -> None:
    ran = subprocess.run([sys.executable, "-c", _REFUSED], capture_output=True, text=True, timeout=240, check=False)
    if ran.stdout == "none\n":
        pytest.skip("there are no control groups here")
    assert ran.stdout.split("\n")[:-1] == ["EBUSY"] * 3 + ["groups 1 True", "-9", "b 2"], ran.stdout + ran.stderr
