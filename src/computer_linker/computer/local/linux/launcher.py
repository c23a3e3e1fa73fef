"""The launcher: a small process of its own that starts, reaps and ends commands for the service.

It runs as a plain script on the standard library alone, so it stays small and forks fast whatever the service holds.
Forking is the slow part of starting a program, so it forks ahead: each waiting child is handed to the service with a
socket, takes one order through it, and waits at the same socket (its gate) for the word to start.

It adopts every orphan (child subreaper), and when its control socket closes, because the service stopped or was
killed, it ends everything it ever started. Every child dies with the launcher by the kernel's own rule.

Messages are JSON, one a packet. In: fork, signal, kill. Out: ready (with the child's socket), failed, exit.
"""

import contextlib
import ctypes
import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from typing import Any

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 38, 36
PR_CAPBSET_DROP = 24
_TIOCSCTTY = 0x540E
_MAX_PACKET = 400_000
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, *_IGNORED)
RUN_VARIABLE = "COMPUTER_LINKER_RUN"
_libc = ctypes.CDLL(None, use_errno=True)


class Launcher:
    """Children by id, each with our copy of the service's end of its socket."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.last_id = 0
        self.ids: dict[int, int] = {}
        self.pids: dict[int, int] = {}
        # While we hold this end a child never reads end-of-file at its gate: a dead service must not open it.
        self.gates: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Answer until the service goes away; then end everything."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(woken, select.POLLIN)
        try:
            while True:
                ready = dict(poll.poll())
                if woken in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(woken, 4096)
                    self.reap()
                if self.control.fileno() in ready and not self.take():
                    return
        finally:
            self.end_all()

    def take(self) -> bool:
        """Take one message; False when the service is gone."""
        try:
            data = self.control.recv(4096)
        except OSError:
            return False
        if not data:
            return False
        message = json.loads(data)
        match message["do"]:
            case "fork":
                self.fork()
            case "signal":
                self.signal(message["id"], message["number"], past_sandbox=message["wrapped"])
            case "kill":
                self.kill(message["id"])
        return True

    def fork(self) -> None:
        """Fork a child that waits for its order, and hand its socket to the service."""
        self.last_id += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        launcher_pid = os.getpid()
        with theirs:
            try:
                pid = os.fork()
            except OSError as error:
                ours.close()
                self.tell({"event": "failed", "id": 0, "errno": error.errno, "step": "fork"})
                return
            if pid == 0:
                ours.close()
                _become(self.last_id, theirs, launcher_pid, self.control)
        self.ids[pid] = self.last_id
        self.pids[self.last_id] = pid
        self.gates[self.last_id] = ours
        self.tell({"event": "ready", "id": self.last_id, "pid": pid}, [ours.fileno()])

    def signal(self, child: int, number: int, *, past_sandbox: bool) -> None:
        """Signal the child's group and its descendants, but not the sandbox program that holds them."""
        pid = self.pids.get(child)
        if pid is None:
            return
        tree = _descendants(pid)
        if past_sandbox:
            # The sandbox program and its first process would end everything at once.
            for inner in tree:
                if not _is_sandbox_program(inner, pid):
                    _send(inner, number)
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        for inner in tree:
            _send(inner, number)

    def kill(self, child: int) -> None:
        pid = self.pids.get(child)
        if pid is None:
            return
        tree = _descendants(pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        for inner in tree:
            _send(inner, signal.SIGKILL)
        for stray in _children(os.getpid()):
            if stray not in self.ids and self.owner(stray) == child:
                _kill_tree(stray)

    def reap(self) -> None:
        """Collect every ended child; what an ended command left behind is ended too."""
        ended: list[tuple[int, int]] = []
        reaped = 0
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            reaped += 1
            if pid in self.ids:
                ended.append((pid, status))
        for pid, status in ended:
            child = self.ids.pop(pid)
            self.pids.pop(child, None)
            self.gates.pop(child).close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            self.tell({"event": "exit", "id": child, "status": status})
        if reaped:
            self.end_strays()

    def end_strays(self) -> None:
        """End adopted orphans whose command has ended; an orphan of a running command lives on with it."""
        for pid in _children(os.getpid()):
            if pid not in self.ids and self.owner(pid) is None:
                _kill_tree(pid)

    def owner(self, pid: int) -> int | None:
        """The running command an orphan belongs to: by its session, else by the mark in its environment."""
        session = _session(pid)
        if session in self.ids:
            return self.ids[session]
        mark = f"{RUN_VARIABLE}=".encode()
        for entry in _read(f"/proc/{pid}/environ").split(b"\0"):
            if entry.startswith(mark) and entry[len(mark) :].isdigit():
                child = int(entry[len(mark) :])
                return child if child in self.pids else None
        return None

    def end_all(self) -> None:
        """The service is gone: end everything, twice over for what forked meanwhile."""
        for _ in range(5):
            tree = _descendants(os.getpid())
            if not tree:
                return
            for pid in tree:
                _send(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass

    def tell(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self.control, [json.dumps(message).encode()], fds or [])


def _become(number: int, link: socket.socket, launcher: int, control: socket.socket) -> None:
    """In the child: wait for an order, take on all it asks for, wait at the gate, become the program. Never returns."""
    step = "setup"
    try:
        _stand_alone(launcher)
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
        if order["gate"] == "self" and os.read(gate, 1) != b"g":
            os._exit(127)
        step = "exec"
        environment = {**order["env"], RUN_VARIABLE: str(number)}
        os.execve(order["argv"][0], order["argv"], environment)  # noqa: S606  # the argv was judged by the service
    except OSError as error:
        with contextlib.suppress(OSError):
            told = {"event": "failed", "id": number, "errno": error.errno, "step": step}
            control.send(json.dumps(told).encode())
    finally:
        os._exit(127)


def _stand_alone(launcher: int) -> None:
    """A session of its own, no way to gain rights, ordinary signals, and death with the launcher."""
    os.setsid()
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != launcher:
        os._exit(127)
    _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    signal.set_wakeup_fd(-1)
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        # When memory runs out, a command goes before the service.
        score.write("500")


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
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)
    if _libc.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _landlock(rules: dict[str, Any]) -> None:
    attributes = bytes.fromhex(rules["attributes"])
    ruleset = _libc.syscall(444, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for place, access in rules["beneath"]:
        fd = 10 + place if isinstance(place, int) else _open_path(place)
        if fd is None:
            continue
        rule = int(access).to_bytes(8, sys.byteorder) + int(fd).to_bytes(4, sys.byteorder)
        if _libc.syscall(445, ruleset, 1, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_add_rule")
    if _libc.syscall(446, ruleset, 0) != 0:
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
    if _libc.prctl(22, 2, ctypes.byref(code), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def _children(pid: int) -> list[int]:
    return [int(child) for child in _read(f"/proc/{pid}/task/{pid}/children").split()]


def _session(pid: int) -> int:
    # The program's name is in brackets and may itself hold spaces and brackets.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[3]) if len(fields) > 3 else 0


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = _children(pid)
    while waiting and len(found) < 100_000:
        child = waiting.pop()
        found.append(child)
        waiting.extend(_children(child))
    return found


def _is_sandbox_program(pid: int, outer: int) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/exe", f"/proc/{outer}/exe")  # noqa: PTH121  # pathlib is slow to import
    except OSError:
        return False


def _kill_tree(pid: int) -> None:
    for inner in [*_descendants(pid), pid]:
        _send(inner, signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


if __name__ == "__main__":
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for ignored in _IGNORED:
        signal.signal(ignored, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    gc.disable()
    gc.freeze()
    Launcher(control).serve()
