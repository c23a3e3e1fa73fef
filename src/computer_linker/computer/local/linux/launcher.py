"""The launcher: a small separate process that starts, reaps and ends commands for the service.

It forks in advance, because forking is the slow part of starting a program: each waiting child is passed to the service
with a socket, receives one order through it, and waits at the same socket (its gate) for the start message. Before the order
it may be given the root of a sandboxed program to stage.

It imports only a few modules written in C: every page of its memory makes fork, and freeing the child's copy at execve,
slower. `json`, `socket`, `signal` and `contextlib` together were measured to make a command a third slower.

It adopts every orphan (child subreaper), and when its control socket closes, because the service stopped or was
killed, it ends everything it ever started. Every child dies with the launcher (PR_SET_PDEATHSIG).

Messages are marshalled, one per packet; both ends are the same interpreter. In: fork, signal, kill. Out: ready (with the
child's socket), failed, exit.
"""

import _socket
import ctypes
import errno
import fcntl
import gc
import marshal
import os
import select
import sys
import time

from computer_linker.computer.local.linux.covering import cover_again
from computer_linker.computer.local.linux.id_maps import IdMapper
from computer_linker.computer.local.linux.launched import (
    FIRST_HIGH,
    HELD_BACK,
    PR_SET_CHILD_SUBREAPER,
    become,
    libc,
    raise_descriptors,
)
from computer_linker.computer.local.linux.run_numbers import carries
from computer_linker.computer.local.linux.slots import Slot, Slots
from computer_linker.system.proc_files import (
    SIGKILL,
    children,
    descendants,
    is_sandbox_program,
    kill_tree,
    send,
    send_to_group,
    session_of,
    write,
)

_SCAN_AFTER_S = 0.02
_SIGCHLD = 17
_SIG_BLOCK = 0
_SIGNAL_RECORD = 128
_MAX_EARLY = 256


def serve(control_fd: int) -> None:
    """Run the launcher until the service disconnects."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.sigprocmask(_SIG_BLOCK, _mask(*HELD_BACK), None)
    # A child puts its program's descriptors at low numbers.
    control = fcntl.fcntl(control_fd, fcntl.F_DUPFD_CLOEXEC, FIRST_HIGH)
    os.close(control_fd)
    raise_descriptors()
    # Children inherit it: when memory runs out, the kernel ends a command before the service or the person's programs.
    write("/proc/self/oom_score_adj", "500")
    gc.disable()
    gc.freeze()
    Launcher(_socket.socket(fileno=control)).serve()


class Launcher:
    """Children by id, each with our copy of the service's end of its socket."""

    def __init__(self, control: _socket.socket) -> None:
        self.control = control
        self.slots = Slots(control)
        self.last_id = 0
        self.ids: dict[int, int] = {}
        self.pids: dict[int, int] = {}
        self.slot_of: dict[int, Slot] = {}
        self.emptied: list[Slot] = []
        """Slots whose command has ended, but which still contain processes."""
        # While we hold this end a child never reads end-of-file at its gate: a dead service must not open it.
        self.gates: dict[int, _socket.socket] = {}
        self.mapper: IdMapper | None = None
        self.strays_at: float | None = None
        self.early: list[tuple[int, int]] = []
        """Signals for programs that their sandbox has not started yet."""
        self.coverers: dict[int, tuple[int, int]] = {}
        """Processes that close a name again, with the command and the number of the order."""

    def serve(self) -> None:
        """Handle messages until the service disconnects; then end everything."""
        ended = _ended_children()
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(ended, select.POLLIN)
        try:
            while True:
                is_idle = self.strays_at is None and not self.early
                ready = dict(poll.poll(None if is_idle else _SCAN_AFTER_S * 1000))
                if ended in ready:
                    os.read(ended, 32 * _SIGNAL_RECORD)
                    self.reap()
                if self.strays_at is not None and time.monotonic() >= self.strays_at:
                    self.end_strays()
                early, self.early = self.early, []
                for child, number in early:
                    self.signal(child, number, past_sandbox=True)
                if self.control.fileno() in ready and not self.take():
                    return
        finally:
            self.end_all()
            self.slots.close()

    def take(self) -> bool:
        """Handle one message; False when the service has disconnected."""
        try:
            data = self.control.recv(4096)
        except OSError:
            return False
        if not data:
            return False
        message = marshal.loads(data)  # noqa: S302  # from the service alone
        match message["do"]:
            case "fork":
                self.fork(message["client"], message["ids"])
            case "signal":
                self.signal(message["id"], message["number"], past_sandbox=message["wrapped"])
            case "kill":
                self.kill(message["id"])
            case "cover":
                self.cover(message["id"], message["number"], message["name"])
        return True

    def fork(self, client: str, ids: int) -> None:
        """Fork a child for this client that waits for its order, and pass its socket to the service.

        `ids` is the first of the host's ids that stand for other users in a sandbox; 0 where there are none.
        """
        self.last_id += 1
        number = self.last_id
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        ours.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, 1 << 20)
        try:
            if ids and self.mapper is None:
                self.mapper = IdMapper(ids)
            pid, slot = self.forked(number, client, theirs, ours)
        except OSError as error:
            ours.close()
            self.report({"event": "failed", "id": 0, "client": client, "errno": error.errno, "step": "fork"})
            return
        finally:
            theirs.close()
        if slot is not None:
            self.slot_of[number] = slot
        self.ids[pid] = number
        self.pids[number] = pid
        self.gates[number] = ours
        try:
            self.report({"event": "ready", "id": number, "pid": pid, "client": client}, ours)
        except OSError as error:
            # Too many descriptors of this user are being passed at this moment (ETOOMANYREFS).
            self.report({"event": "failed", "id": 0, "client": client, "errno": error.errno, "step": "fork"})
            self.kill(number)

    def cover(self, child: int, number: int, name: "tuple[bytes, bool, int, int]") -> None:
        """Close a name again in the sandbox of a running command."""
        pid = self.pids.get(child)
        made = 0
        if pid is not None:
            try:
                made = os.fork()
            except OSError:
                pid = None
        if pid is None:
            self.report({"event": "covered", "id": child, "number": number, "status": 1})
        elif made == 0:
            path, is_hidden, device, inode = name
            cover_again(pid, path, is_hidden=is_hidden, device=device, inode=inode)
        else:
            self.coverers[made] = child, number

    def forked(self, number: int, client: str, theirs: _socket.socket, ours: _socket.socket) -> tuple[int, Slot | None]:
        """Fork a child in a slot of the client, or directly where there are no control groups."""
        maps = None if self.mapper is None else self.mapper.maps
        for _ in range(3):
            slot = self.slots.take(client)
            if slot is None:
                break
            try:
                return slot.fork(number, theirs, maps), slot
            except OSError as error:
                if error.errno != errno.ESRCH:
                    raise
                # Its anchor was killed, and is reaped next.
                slot.is_free = False
        if self.slots.groups is not None:
            raise OSError(errno.EBUSY, "no anchor could be kept")
        launcher = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            become(number, theirs, launcher, self.control, [], maps)
        return pid, None

    def signal(self, child: int, number: int, *, past_sandbox: bool) -> None:
        """Signal the child's group and its descendants, but not the sandbox program that holds them."""
        pid = self.pids.get(child)
        if pid is None:
            return
        tree = descendants(pid)
        if past_sandbox:
            # Signalling the sandbox program or its first process would end everything at once.
            inside = [inner for inner in tree if not is_sandbox_program(inner, pid)]
            for inner in inside:
                send(inner, number)
            if not inside and len(self.early) < _MAX_EARLY:
                self.early.append((child, number))
            return
        send_to_group(pid, number)
        for inner in tree:
            send(inner, number)

    def kill(self, child: int) -> None:
        pid = self.pids.get(child)
        if pid is None:
            return
        slot = self.slot_of.get(child)
        if slot is not None:
            self.slots.end(slot)
            return
        tree = descendants(pid)
        send_to_group(pid, SIGKILL)
        for inner in tree:
            send(inner, SIGKILL)
        for stray in children(os.getpid()):
            is_ours = stray in self.ids or stray in self.coverers or self.is_mapper(stray)
            if not is_ours and self.owner(stray) == child:
                kill_tree(stray)

    def reap(self) -> None:
        """Reap every ended child, and end what its command left running.

        Without a control group that is done before the exit is reported: the service then removes the command's folders.
        """
        reaped = 0
        ungrouped: list[dict[str, object]] = []
        while (ended := _next_ended()) is not None:
            pid = ended.si_pid
            child = self.ids.pop(pid, None)
            if child is not None:
                # Before it is reaped, while its pid cannot be reused.
                send_to_group(pid, SIGKILL)
                status = ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status
                slot = self.slot_of.pop(child, None)
                exited: dict[str, object] = {"event": "exit", "id": child, "status": status, "reached": []}
                if slot is None:
                    ungrouped.append(exited)
                else:
                    self.report(exited | {"reached": slot.reached()})
                    self.emptied.append(slot)
            os.waitpid(pid, 0)
            reaped += 1
            if pid in self.coverers:
                covered, number = self.coverers.pop(pid)
                self.report({"event": "covered", "id": covered, "number": number, "status": ended.si_status})
            if child is not None:
                self.pids.pop(child, None)
                self.gates.pop(child).close()
            self.slots.anchor_ended(pid)
            if self.mapper is not None and self.is_mapper(pid):
                self.mapper.close()
                self.mapper = None
        if ungrouped:
            self.end_strays()
            for exited in ungrouped:
                self.report(exited)
        self.emptied = [slot for slot in self.emptied if not self.slots.emptied(slot)]
        if reaped and self.strays_at is None:
            # Delayed: where hundreds end together, one scan serves them all.
            self.strays_at = time.monotonic() + _SCAN_AFTER_S

    def end_strays(self) -> None:
        """End adopted orphans whose command has ended; an orphan of a running command lives on with it."""
        self.strays_at = None
        self.emptied = [slot for slot in self.emptied if not self.slots.emptied(slot)]
        for pid in children(os.getpid()):
            if (
                pid not in self.ids
                and pid not in self.coverers
                and pid not in self.slots.by_anchor
                and not self.is_mapper(pid)
                and self.owner(pid) is None
            ):
                kill_tree(pid)
        if self.emptied:
            self.strays_at = time.monotonic() + _SCAN_AFTER_S

    def is_mapper(self, pid: int) -> bool:
        return self.mapper is not None and pid == self.mapper.pid

    def owner(self, pid: int) -> int | None:
        """The running command an orphan belongs to: by its control group, else by its session or the number it carries."""
        if self.slots.groups is not None:
            name = self.slots.of(pid)
            return next((child for child, slot in self.slot_of.items() if slot.name == name), None)
        session = session_of(pid)
        if session in self.ids:
            return self.ids[session]
        return next((child for child in self.pids if carries(pid, child)), None)

    def end_all(self) -> None:
        """End everything after the service has disconnected, repeatedly for what forked meanwhile."""
        for _ in range(300):
            tree = descendants(os.getpid())
            if not tree:
                return
            for pid in tree:
                send(pid, SIGKILL)
            while (ended := _next_ended()) is not None:
                os.waitpid(ended.si_pid, 0)
            time.sleep(0.01)

    def report(self, message: dict[str, object], with_socket: _socket.socket | None = None) -> None:
        rights = [] if with_socket is None else [with_socket.fileno().to_bytes(4, sys.byteorder)]
        try:
            self.control.sendmsg(
                [marshal.dumps(message)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fd) for fd in rights]
            )
        except (BrokenPipeError, ConnectionResetError):
            return


def _mask(*signals: int) -> bytes:
    return sum(1 << (number - 1) for number in signals).to_bytes(128, sys.byteorder)


def _ended_children() -> int:
    """A descriptor that is readable when a child has ended. Its signal is blocked: a child unblocks it for its program."""
    wanted = _mask(_SIGCHLD)
    libc.sigprocmask(_SIG_BLOCK, wanted, None)
    fd: int = libc.signalfd(-1, wanted, os.O_CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "signalfd")
    return fd


def _next_ended() -> os.waitid_result | None:
    """A child that has ended and is not reaped yet."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
