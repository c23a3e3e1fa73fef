"""The launcher's child: takes on everything an order asks for, waits at its gate, and becomes the program."""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import sys
from typing import Any

from computer_linker.computer.local.linux.crowd import MAX_PROCESSES
from computer_linker.computer.local.linux.proc_files import read, write

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 38, 36
PR_CAPBSET_DROP = 24
RUN_VARIABLE = "COMPUTER_LINKER_RUN"
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, *IGNORED)
_TIOCSCTTY = 0x540E
_MAX_PACKET = 400_000
libc = ctypes.CDLL(None, use_errno=True)


def become(number: int, link: socket.socket, launcher: int, control: socket.socket, crowd: str) -> None:
    """In the child: wait for an order, take on all it asks for, wait at the gate, become the program. Never returns."""
    step = "setup"
    try:
        _stand_alone(launcher, crowd)
        data, fds = _receive(link)
        if not data:
            os._exit(127)
        order = json.loads(data)
        for name, value in order["limits"].items():
            resource.setrlimit(getattr(resource, name), (value, value))
        gate = _place_descriptors(order, fds, link.fileno())
        if order["pty"] and not order["wrapped"]:
            fcntl.ioctl(0, _TIOCSCTTY, 0)
        if order["kernel"] is not None:
            _confine(order["kernel"])
        environment = {os.fsencode(name): os.fsencode(value) for name, value in order["env"].items()}
        environment[RUN_VARIABLE.encode()] = str(number).encode()
        if order["gate"] == "self" and os.read(gate, 1) != b"g":
            os._exit(127)
        step = "exec"
        os.execve(order["argv"][0], order["argv"], environment)  # noqa: S606  # the argv was judged by the service
    except OSError as error:
        with contextlib.suppress(OSError):
            told = {"event": "failed", "id": number, "errno": error.errno, "step": step}
            control.send(json.dumps(told).encode())
    finally:
        os._exit(127)


def _stand_alone(launcher: int, crowd: str) -> None:
    """A session of its own, no way to gain rights, ordinary signals, and death with the launcher."""
    os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != launcher:
        os._exit(127)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    signal.set_wakeup_fd(-1)
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    # When memory runs out, a command goes before the service.
    write("/proc/self/oom_score_adj", "500")
    if crowd:
        write(f"{crowd}/cgroup.procs", "0")
    else:
        # The kernel counts all of the user's processes, so the bound is what runs now and some more.
        total = int(read("/proc/loadavg").split()[3].partition(b"/")[2])
        most = total + MAX_PROCESSES
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    """One packet and its descriptors. `socket.recv_fds` would drop the close-on-exec flag."""
    room = socket.CMSG_SPACE(64 * 4)
    data, ancillary, _, _ = control.recvmsg(_MAX_PACKET, room, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw) - 3, 4)]
    return data, fds


def _place_descriptors(order: dict[str, Any], fds: list[int], gate: int) -> int:
    """Put the descriptors where the program expects them, and enter its folder; all else is close-on-exec."""
    # Out of the way first, so that no target number overwrites a descriptor still needed.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200) for fd in fds]
    gate = fcntl.fcntl(gate, fcntl.F_DUPFD_CLOEXEC, 200)
    for target, index in zip((0, 1, 2), order["stdio"], strict=True):
        os.dup2(high[index], target, inheritable=True)
    for offset, index in enumerate(order["fds"]):
        os.dup2(high[index], 10 + offset, inheritable=order["wrapped"])
    if order["gate"] == "argv":
        os.dup2(gate, 9, inheritable=True)
    if order["cwd"] is not None:
        os.fchdir(high[order["cwd"]])
    return gate


def _confine(rules: dict[str, Any]) -> None:
    """Landlock and seccomp, as the service worked them out (see kernel_rules.py)."""
    if rules["drop"]:
        _drop_rights()
    if rules["landlock"] is not None:
        _landlock(rules["landlock"])
    if rules["seccomp"]:
        _seccomp(bytes.fromhex(rules["seccomp"]))


def _drop_rights() -> None:
    """Give up every capability, for the program too: a superuser's would look past the rules."""
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)
    if libc.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _landlock(rules: dict[str, Any]) -> None:
    attributes = bytes.fromhex(rules["attributes"])
    ruleset = libc.syscall(444, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for place, access in rules["beneath"]:
        fd = 10 + place if isinstance(place, int) else _open_path(place)
        if fd is None:
            continue
        rule = int(access).to_bytes(8, sys.byteorder) + int(fd).to_bytes(4, sys.byteorder)
        if libc.syscall(445, ruleset, 1, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_add_rule")
    if libc.syscall(446, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)


def _open_path(place: str) -> int | None:
    try:
        return os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None


def _seccomp(program: bytes) -> None:
    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    code = Filter(len(program) // 8, program)
    if libc.prctl(22, 2, ctypes.byref(code), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")
