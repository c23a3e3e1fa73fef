"""Slots: control groups for one command each, prepared before a command needs one.

Moving a process into a group is slow and stops the machine for a moment (see control_groups.py), so it is done once a
slot: an anchor process is moved there and stays, and each command of the slot is forked by it and is in the group from
its first instruction. The anchor forks with CLONE_PARENT, so that the child is the launcher's own and the launcher
reaps it. A slot is used again once it is empty. Slots of one client lie in one group, which bounds them together.
"""

import _socket
import ctypes
import errno
import os
import sys

from computer_linker.computer.local.linux.control_groups import ControlGroups
from computer_linker.computer.local.linux.launched import PR_SET_NAME, PR_SET_PDEATHSIG, become, libc
from computer_linker.computer.local.linux.proc_files import SIGKILL, read, send, write

_CLONE3, _CLONE_PARENT = 435, 0x8000
_MAX_FREE = 16
_MARK_BYTES = 16
_ANCHOR_NAME = b"linker-anchor"
"""As `ps` shows it."""


class Limits:
    """How much a command and a client may use, by default."""

    def __init__(self, memory: int) -> None:
        cores = os.cpu_count() or 1
        most = int(read("/proc/sys/kernel/pid_max") or b"32768") // 8
        # Threads count too: a browser has 500, and a compiler on each core as many as there are cores.
        self.processes = min(max(1024, 128 * cores), most)
        self.processes_of_client = 2 * self.processes
        # For one command and for all of one client; control_groups.py gives three quarters to all, so a second client has
        # a quarter left.
        self.memory = memory // 2


class Slot:
    """One group with its anchor."""

    def __init__(self, name: str, client: str, groups: ControlGroups, pid: int, link: _socket.socket) -> None:
        self.name = name
        self.client = client
        self.anchor = pid
        self.link = link
        self.places = groups.places(name)
        self.is_free = True
        self.is_used = False
        """A command is in it. One that is neither free nor used is about to be given up."""
        self._counters = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in groups.counters(name)]
        self._before = self._counted()
        self._reached: list[tuple[str, int]] | None = None

    def fork(self, number: int, mark: str, gate: _socket.socket) -> int:
        """Have the anchor fork a child that takes its order at this gate; its process id."""
        fd = gate.fileno().to_bytes(4, sys.byteorder)
        try:
            self.link.sendmsg([f"{number} {mark}".encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fd)])
            answer = int(self.link.recv(64) or b"-3")
        except OSError as error:
            raise OSError(errno.ESRCH, "the slot's anchor is gone") from error
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        self.is_free, self.is_used = False, True
        self._before, self._reached = self._counted(), None
        return answer

    def reached(self) -> list[tuple[str, int]]:
        """The limits the command has reached until it was to end, each with its value."""
        if self._reached is None:
            counted = zip(("processes", "memory"), self._before, self._counted(), strict=True)
            self._reached = [(name, self._limit(name)) for name, old, new in counted if new > old]
        return self._reached

    def close(self) -> None:
        """Let the anchor end."""
        self.link.close()
        for fd in self._counters:
            os.close(fd)

    def _counted(self) -> list[int]:
        """How often each limit was reached so far."""
        found = []
        for fd, word in zip(self._counters, (b"max", b"oom_kill"), strict=True):
            fields = os.pread(fd, 4096, 0).split()
            found.append(int(fields[fields.index(word) + 1]) if word in fields else 0)
        return found

    def _limit(self, name: str) -> int:
        if name == "processes":
            text = read(f"{self.places[0]}/pids.max").strip()
            return int(text) - 1 if text.isdigit() else 0
        file = "memory.max" if len(self.places) == 1 else "memory.limit_in_bytes"
        text = read(f"{self.places[-1]}/{file}").strip()
        return int(text) if text.isdigit() else 0


class Slots:
    """All slots of one launcher."""

    def __init__(self, control: _socket.socket) -> None:
        self.groups = ControlGroups.found()
        self.limits = Limits(self.groups.memory if self.groups else 0)
        self.by_anchor: dict[int, Slot] = {}
        self._control = control
        self._clients: dict[str, str] = {}
        self._last = 0

    def take(self, client: str) -> Slot | None:
        """A free slot of this client; None where there are no control groups."""
        if self.groups is None:
            return None
        for slot in self.by_anchor.values():
            if slot.is_free and slot.client == client:
                break
        else:
            made = self._make(client)
            if made is None:
                return None
            slot = made
        # One more for the anchor.
        self.groups.limit(slot.name, processes=self.limits.processes + 1, memory=self.limits.memory)
        return slot

    def end(self, slot: Slot) -> bool:
        """End everything in a slot but its anchor; True once nothing is left.

        Nothing can fork any more once the limit is below what is there, so that nothing is missed.
        """
        assert self.groups is not None
        # While the limit is still the command's own.
        slot.reached()
        write(f"{slot.places[0]}/pids.max", "0")
        others = [pid for pid in self.groups.members(slot.name) if pid != slot.anchor]
        for pid in others:
            send(pid, SIGKILL)
        return not others

    def emptied(self, slot: Slot) -> bool:
        """End what an ended command left in its slot; True once the slot can be used again, or is given up."""
        if not self.end(slot):
            return False
        slot.is_used = False
        if slot.anchor in self.by_anchor:
            slot.is_free = True
            self._retire()
        else:
            self._give_up(slot)
        return True

    def of(self, pid: int) -> str:
        """The name of the slot a process is in; empty when it is in none."""
        if self.groups is None:
            return ""
        top = self.groups.tops[0].rpartition("/")[2].encode()
        for line in read(f"/proc/{pid}/cgroup").splitlines():
            if top in line:
                return line.partition(top + b"/")[2].decode()
        return ""

    def anchor_ended(self, pid: int) -> None:
        """An anchor has ended: its slot is given up, once the command in it has ended too."""
        slot = self.by_anchor.pop(pid, None)
        if slot is not None and not slot.is_used:
            self._give_up(slot)

    def _give_up(self, slot: Slot) -> None:
        """Remove a slot, and its client's group with the last one."""
        slot.close()
        assert self.groups is not None
        self.groups.remove(slot.name)
        if not any(other.client == slot.client for other in self.by_anchor.values()):
            # Fails while another slot without an anchor is in it; that one tries again.
            above = slot.name.partition("/")[0]
            if self.groups.remove(above):
                self._clients.pop(slot.client, None)

    def close(self) -> None:
        """Remove every group; all processes have been ended."""
        if self.groups is not None:
            self.groups.remove_all()

    def _make(self, client: str) -> Slot | None:
        assert self.groups is not None
        self._last += 1
        above = self._clients.get(client)
        if above is None:
            above = self._clients[client] = f"client-{self._last}"
            limits = self.limits
            if not self.groups.make(above, processes=limits.processes_of_client, memory=limits.memory):
                return None
        name = f"{above}/{self._last}"
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        launcher = os.getpid()
        pid = os.fork()
        if pid == 0:
            _anchor(theirs, launcher, self._control, self.groups.places(name))
        theirs.close()
        if not self.groups.make(name) or not self.groups.enter(name, pid):
            send(pid, SIGKILL)
            ours.close()
            self.groups = None
            return None
        self.groups.end_with_one(name)
        slot = self.by_anchor[pid] = Slot(name, client, self.groups, pid, ours)
        return slot

    def _retire(self) -> None:
        """Give up the oldest free slots when there are many."""
        free = [slot for slot in self.by_anchor.values() if slot.is_free]
        for slot in free[: max(0, len(free) - _MAX_FREE)]:
            # It ends when it reads the end of its link, and is reaped like any child.
            slot.is_free = False
            slot.link.close()


def _anchor(link: _socket.socket, launcher: int, control: _socket.socket, places: list[str]) -> None:
    """In the anchor: fork a child for each message, until the launcher closes the link. Never returns."""
    try:
        libc.prctl(PR_SET_NAME, _ANCHOR_NAME, 0, 0, 0)
        libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:
            return
        # Where we may: the kernel ends the command, not the anchor.
        write("/proc/self/oom_score_adj", "-1000")
        kept = {0, 1, 2, link.fileno(), control.fileno()}
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # pathlib is slow to import
            if int(name) not in kept:
                _close(int(name))
        how = _CloneArguments(flags=_CLONE_PARENT)
        while True:
            data, ancillary, _, _ = link.recvmsg(128, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
            if not data:
                return
            number, mark = data.split()
            gate = _socket.socket(fileno=int.from_bytes(ancillary[0][2][:4], sys.byteorder))
            pid = libc.syscall(_CLONE3, ctypes.byref(how), ctypes.sizeof(how))
            if pid == 0:
                link.close()
                become(int(number), mark.decode(), gate, launcher, control, places)
            gate.close()
            link.send(str(pid if pid > 0 else -ctypes.get_errno()).encode())
    finally:
        os._exit(0)


class _CloneArguments(ctypes.Structure):
    """`struct clone_args` of its first version (clone3(2))."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls")
    )


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return


def new_mark() -> str:
    """A mark for one command that no other can guess."""
    return os.urandom(_MARK_BYTES).hex()
