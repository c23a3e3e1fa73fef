"""The launcher's child: applies its order, waits at its gate, and executes the program."""

import _socket
import ctypes
import errno
import fcntl
import marshal
import os
import resource
import sys

from computer_linker.computer.local.linux.control_groups import limit
from computer_linker.computer.local.linux.id_maps import IdMaps
from computer_linker.computer.local.linux.inner_network import open_listeners
from computer_linker.computer.local.linux.launcher_protocol import LONG, MAX_DESCRIPTORS, STAGE, most_open
from computer_linker.computer.local.linux.mount_calls import Unstaged, detach
from computer_linker.computer.local.linux.run_numbers import carry
from computer_linker.computer.local.linux.staging import OLD_ROOT, StagedRoot, rehearse, stage
from computer_linker.system.proc_files import SIGKILL, read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Not at run time: `typing` imports a dozen other modules.
    from typing import Any

PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 15, 38, 36
PR_CAPBSET_DROP = 24
HELD_BACK = (1, 2, 3, 15)
"""SIGHUP, SIGINT, SIGQUIT and SIGTERM, without effect on the launcher. By number, to avoid an import.

They are blocked, not ignored: one sent to a child before execve stays pending, and is not lost.
"""
_RESTORED = tuple(number for number in range(1, 32) if number not in (9, 19))
"""All that can be reset, since `nohup` and `&` in a script leave some ignored."""
UNCOUNTED_PROCESSES = 2048
"""The process limit of a command above the current number, without control groups."""
_LOWER_PRIORITY = 5
"""Of a confined program without a control group, whose weight would divide processor time."""
_SIG_SETMASK = 2
FIRST_HIGH = 300
"""Descriptors are put here first, beyond all that the program expects."""
_JOIN_SESSION_KEYRING = 1
_TIOCSCTTY = 0x540E
_FILE_RIGHTS = 0b111 | 1 << 14 | 1 << 15
"""Landlock's rights to a file: execute, write, read, truncate, ioctl. It refuses a rule with any other right on a file."""
_packet = bytearray(200_000)
"""Allocated once by the launcher; its children share the pages they do not write."""
_REHEARSAL = marshal.dumps(
    {
        "argv": ["/usr/bin/true", "an argument"],
        "env": {"PATH": "/usr/bin:/bin", "HOME": "/", "LANG": "C.UTF-8"},
        "stdio": (0, 1, 2),
        "fds": [3, 4],
    }
)
_OPEN_SOFT, _OPEN_HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
"""As the service was started with, since this module is loaded before the launcher raises its own."""
libc = ctypes.CDLL(None, use_errno=True)
_CLONE_VM, _CLONE_PARENT, _CLONE_THREAD, _SIGCHLD = 0x100, 0x8000, 0x10000, 17
_HELPER_US = ctypes.c_void_p(50_000)
_sleep = ctypes.cast(libc.usleep, ctypes.c_void_p)
_helper_stack = ctypes.create_string_buffer(16_384)
_helper_stack_end = ctypes.c_void_p((ctypes.addressof(_helper_stack) + 16_384) & ~63)


def become(
    number: int,
    link: _socket.socket,
    launcher: int,
    control: _socket.socket,
    groups: list[str],
    maps: IdMaps | None,
) -> None:
    """In the child: wait for an order, apply it, wait at the gate, execute the program. Never returns.

    `groups` are the folders of this process's own control group, if it has one; `maps` gives it further ids, where there are any.
    """
    step = "setup"
    try:
        _detach(launcher)
        if not groups:
            carry(number)
        _rehearse()
        root: StagedRoot | None = None
        listeners: list[_socket.socket] = []
        if _await_message(link) == STAGE:
            step = "staging"
            root, listeners = _staged(link, maps, groups)
            step = "setup"
        _keep_memory()
        order, fds = _received(link)
        if root is None:
            _limit_group(order["limits"], groups)
        _limit_self(order["limits"], groups)
        if root is not None:
            root.verify()
            _report_staged(number, control, listeners)
        gate = _place_descriptors(order, fds, link.fileno())
        if order["wrapped"] or order["kernel"] is not None:
            step = "keyring"
            _leave_keyring()
            step = "setup"
            if not groups:
                os.nice(_LOWER_PRIORITY)
        if order["pty"] and not order["wrapped"]:
            fcntl.ioctl(0, _TIOCSCTTY, 0)
        if order["kernel"] is not None:
            _confine(order["kernel"])
        environment = _environment(order["env"])
        if order["gate"] == "self" and os.read(gate, 1) != b"g":
            os._exit(127)
        _limit_descriptors()
        step = "exec"
        os.execve(order["argv"][0], order["argv"], environment)  # noqa: S606  # the argv was judged by the service
    except OSError as error:
        step = error.step if isinstance(error, Unstaged) else step
        control.send(marshal.dumps({"event": "failed", "id": number, "errno": error.errno, "step": step}))
    finally:
        os._exit(127)


def _staged(link: _socket.socket, maps: IdMaps | None, groups: list[str]) -> "tuple[StagedRoot, list[_socket.socket]]":
    """Stage the root of an order that follows, at once or later, and wait for that order."""
    staging, fds = _received(link)
    # Beyond the numbers that the program's descriptors get.
    held = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_HIGH) for fd in fds]
    for fd in fds:
        os.close(fd)
    _limit_group(staging["limits"], groups)
    staging["terminal"] = None if staging["terminal"] is None else held[staging["terminal"]]
    used = maps if staging["ids"] else None
    if staging["ids"] and maps is None:
        raise Unstaged(errno.EPERM, "user namespace")
    root = stage(staging, [held[index] for index in staging["held"]], used)
    for fd in held:
        os.close(fd)
    if not _has_message(link):
        # bubblewrap then copies and reads fewer mounts. Where an order waits it is left to bubblewrap, which does it
        # anyway: it takes milliseconds.
        detach(b"/" + OLD_ROOT)
    if used is not None:
        used.enter_inner()
    listeners = [] if staging["network"] is None else open_listeners(staging["network"])
    _await_message(link)
    return root, listeners


def _detach(launcher: int) -> None:
    """Start a new session, set no_new_privs, reset signals, and die with the launcher."""
    os.setsid()
    libc.prctl(PR_SET_NAME, b"linker-child", 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() != launcher:
        os._exit(127)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for number in _RESTORED:
        libc.signal(number, None)
    libc.sigprocmask(_SIG_SETMASK, bytes(128), None)
    os.umask(0o022)
    # When memory runs out, the kernel ends a command before the service.
    write("/proc/self/oom_score_adj", "500")


def _limit_group(limits: "dict[str, int]", groups: list[str]) -> None:
    """Set the limits of this command's control group, while its files are in sight."""
    if groups:
        # One more for the anchor.
        limit(groups, processes=limits["processes"] and limits["processes"] + 1, memory=limits["memory_bytes"])


def _limit_self(limits: "dict[str, int]", groups: list[str]) -> None:
    """Set the resource limits of this command: those of its processes and memory only where there is no control group.

    Without a group the kernel counts all of the user's processes, so the bound is the current number plus a margin: a
    command at its limit does not keep a later one from starting. Memory is then limited only where the policy requests
    it, and per process: programs reserve far more than they use.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, limits["file_bytes"])
    if groups:
        return
    running = int(read("/proc/loadavg").split()[3].partition(b"/")[2])
    _lower(resource.RLIMIT_NPROC, running + (limits["processes"] or UNCOUNTED_PROCESSES))
    if limits["memory_bytes"]:
        _lower(resource.RLIMIT_DATA, limits["memory_bytes"])


def raise_descriptors() -> None:
    """In the launcher: have as many descriptors as the service may."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(_OPEN_SOFT, most_open(_OPEN_HARD)[0]), _OPEN_HARD))


def _limit_descriptors() -> None:
    """Last of all, because passing descriptors to the service counts against it."""
    most = most_open(_OPEN_HARD)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_OPEN_SOFT, most), most))


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def _rehearse() -> None:
    """Process a dummy order, so that the memory pages it touches are copied before a caller waits.

    Forked memory is copy-on-write, and every page copied takes a microsecond or two.
    """
    _packet[:4096] = bytes(4096)
    order = marshal.loads(_REHEARSAL)  # noqa: S302  # our own
    resource.getrlimit(resource.RLIMIT_CORE)
    os.close(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 200))
    rehearse()
    # CLONE_THREAD without CLONE_VM is invalid: the kernel refuses it, after the call has touched its memory.
    libc.clone(_sleep, _helper_stack_end, _CLONE_THREAD, _HELPER_US)
    try:
        os.execve("", order["argv"], _environment(order["env"]))  # noqa: S606  # no file has an empty name
    except OSError:
        return


def _await_message(link: _socket.socket) -> int:
    """Wait until a message has arrived, without receiving it. Returns its first byte; never, once the service closed the link."""
    if not link.recv_into(_packet, 1, _socket.MSG_PEEK):
        os._exit(127)
    return _packet[0]


def _has_message(link: _socket.socket) -> bool:
    try:
        return link.recv_into(_packet, 1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT) > 0
    except BlockingIOError:
        return False


def _keep_memory() -> None:
    """Start a helper that shares this memory for a moment, so that execve does not wait for it to be freed.

    The last user of a memory map frees it page by page at execve, which takes half of a small program's run time. The
    helper shares the memory, sleeps, and is that last user. It has none of the order's descriptors, belongs to this
    process's group, and is ended with it.
    """
    # On failure the program only starts a little later.
    libc.clone(_sleep, _helper_stack_end, _CLONE_VM | _CLONE_PARENT | _SIGCHLD, _HELPER_US)


def _environment(given: dict[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in given.items()}


def _received(link: _socket.socket) -> "tuple[dict[str, Any], list[int]]":
    """One message and its descriptors. `socket.recv_fds` would drop the close-on-exec flag."""
    room = _socket.CMSG_SPACE(MAX_DESCRIPTORS * 4)
    size, ancillary, _, _ = link.recvmsg_into([_packet], room, _socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, raw in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds += [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw) - 3, 4)]
    if not size:
        os._exit(127)
    data = bytes(memoryview(_packet)[1:size])
    if data == LONG:
        data = os.pread(fds[-1], os.fstat(fds[-1]).st_size, 0)
        os.close(fds.pop())
    return marshal.loads(data), fds  # noqa: S302  # from the service alone


def _place_descriptors(order: "dict[str, Any]", fds: list[int], gate: int) -> int:
    """Move the descriptors to the numbers the program expects, and enter its folder; the rest is close-on-exec."""
    # To high numbers first, so that no target number overwrites a descriptor still needed.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_HIGH) for fd in fds]
    gate = fcntl.fcntl(gate, fcntl.F_DUPFD_CLOEXEC, FIRST_HIGH)
    for target, index in zip((0, 1, 2), order["stdio"], strict=True):
        os.dup2(high[index], target, inheritable=True)
    for offset, index in enumerate(order["fds"]):
        os.dup2(high[index], 10 + offset, inheritable=order["wrapped"])
    if order["gate"] == "argv":
        os.dup2(gate, 9, inheritable=True)
    if order["filter"] is not None:
        os.dup2(high[order["filter"]], 8, inheritable=True)
    if order["cwd"] is not None:
        os.fchdir(high[order["cwd"]])
    return gate


def _report_staged(number: int, control: _socket.socket, listeners: list[_socket.socket]) -> None:
    """Report the staged root with its namespace, which the service holds, since freeing it takes milliseconds."""
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    fds = [namespace, *(each.fileno() for each in listeners)]
    rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
    control.sendmsg(
        [marshal.dumps({"event": "staged", "id": number})], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)]
    )


def _leave_keyring() -> None:
    """Start with an empty session keyring: the one of the service's user may hold tickets and passwords."""
    call = 250 if os.uname().machine == "x86_64" else 219
    if libc.syscall(call, _JOIN_SESSION_KEYRING, None) < 0 and ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        # ENOSYS: the kernel has no keyrings. EPERM: the container forbids the call.
        raise OSError(ctypes.get_errno(), "keyctl")


def _confine(rules: "dict[str, Any]") -> None:
    """Apply Landlock and seccomp as compiled by the service (see kernel_rules.py)."""
    if rules["drop"]:
        _drop_rights()
    if rules["landlock"] is not None:
        _landlock(rules["landlock"])
    if rules["seccomp"]:
        _seccomp(bytes.fromhex(rules["seccomp"]))


def _drop_rights() -> None:
    """Drop every capability, for the program too: a superuser's would bypass the rules."""
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)
    if libc.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _landlock(rules: "dict[str, Any]") -> None:
    attributes = bytes.fromhex(rules["attributes"])
    ruleset = libc.syscall(444, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for place, access in rules["beneath"]:
        fd = 10 + place if isinstance(place, int) else _open_path(place)
        if fd is None:
            continue
        if os.fstat(fd).st_mode & 0o170000 != 0o040000:
            access &= _FILE_RIGHTS
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
