"""Slots: control groups for one command each, prepared in advance.

Moving a process into a group is slow and stalls the machine for a moment (see control_groups.py), so it is done once per
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
from computer_linker.computer.local.linux.id_maps import CloneArguments, IdMaps
from computer_linker.computer.local.linux.launched import PR_SET_NAME, PR_SET_PDEATHSIG, become, libc
from computer_linker.system.proc_files import SIGKILL, read, send, write

_CLONE3, _CLONE_PARENT = 435, 0x8000
_MAX_FREE = 16
_ANCHOR_NAME = b"linker-anchor"
"""As `ps` shows it."""


class Limits:
    """The default limits of a command and a client."""

    def __init__(self, memory: int) -> None:
        cores = os.cpu_count() or 1
        most = int(read("/proc/sys/kernel/pid_max") or b"32768") // 8
        # Threads count too: a browser has 500, and a compiler on each core as many as there are cores.
        self.processes = min(max(1024, 128 * cores), most)
        self.processes_of_client = 2 * self.processes
        # For one command and for all of one client; control_groups.py limits all commands to three quarters, so a second
        # client has a quarter left.
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
        """A command is in it. A slot that is neither free nor used is about to be removed."""
        self._counters = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in groups.counters(name)]
        self._before = self._counted()
        self._reached: list[tuple[str, int]] | None = None

    def fork(self, number: int, gate: _socket.socket, maps: IdMaps | None) -> int:
        """Have the anchor fork a child that receives its order at this gate; returns its pid."""
        fds = [gate.fileno()] if maps is None else [gate.fileno(), maps.outer, maps.link.fileno()]
        rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
        try:
            self.link.sendmsg([str(number).encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
            answer = int(self.link.recv(64) or b"-3")
        except OSError as error:
            raise OSError(errno.ESRCH, "the slot's anchor is gone") from error
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        self.is_free, self.is_used = False, True
        self._before, self._reached = self._counted(), None
        return answer

    def reached(self) -> list[tuple[str, int]]:
        """The limits the command reached before it was ended, each with its value."""
        if self._reached is None:
            counted = zip(("processes", "memory"), self._before, self._counted(), strict=True)
            self._reached = [(name, self._limit(name)) for name, old, new in counted if new > old]
        return self._reached

    def close(self) -> None:
        """End the anchor by closing its link."""
        self.link.close()
        for fd in self._counters:
            os.close(fd)

    def _counted(self) -> list[int]:
        """How often each limit has been reached."""
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
        self._has_made = False
        """A slot was created once, so control groups work here."""

    def take(self, client: str) -> Slot | None:
        """A free slot of this client; None where there are no control groups.

        Raises OSError when there are, but no slot can be created: then a command is not started without its limits.
        """
        if self.groups is None:
            return None
        slot = next((slot for slot in self.by_anchor.values() if slot.is_free and slot.client == client), None)
        if slot is None:
            slot = self._make(client)
        if slot is None:
            return None
        # One more for the anchor.
        if not self.groups.limit(slot.name, processes=self.limits.processes + 1, memory=self.limits.memory):
            raise OSError(errno.EBUSY, "the limits of a control group could not be set")
        return slot

    def end(self, slot: Slot) -> bool:
        """Kill everything in a slot but its anchor; True once nothing is left.

        Once the limit is below the current number, nothing can fork, so nothing is missed.
        """
        assert self.groups is not None
        # Before the limit is lowered, so that the counters are the command's own.
        slot.reached()
        write(f"{slot.places[0]}/pids.max", "0")
        others = [pid for pid in self.groups.members(slot.name) if pid != slot.anchor]
        for pid in others:
            send(pid, SIGKILL)
        return not others

    def emptied(self, slot: Slot) -> bool:
        """Kill what an ended command left in its slot; True once the slot can be reused, or is removed."""
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
        """Handle the end of an anchor: its slot is removed once the command in it has ended too."""
        slot = self.by_anchor.pop(pid, None)
        if slot is not None and not slot.is_used:
            self._give_up(slot)

    def _give_up(self, slot: Slot) -> None:
        """Remove a slot, and its client's group with the last one."""
        slot.close()
        assert self.groups is not None
        self.groups.remove(slot.name)
        if not any(other.client == slot.client for other in self.by_anchor.values()):
            # Fails while it contains another slot without an anchor; that one tries again.
            above = slot.name.partition("/")[0]
            if self.groups.remove(above):
                self._clients.pop(slot.client, None)

    def close(self) -> None:
        """Remove every group; all processes have been ended."""
        if self.groups is not None:
            self.groups.remove_all()

    def _make(self, client: str) -> Slot | None:
        assert self.groups is not None
        slot = self._made(self.groups, client)
        if slot is None and self._has_made:
            # A temporary failure while other slots are in use: what is in those is known and ended by its group.
            raise OSError(errno.EBUSY, "a control group could not be made")
        if slot is None:
            self.groups = None
        else:
            self._has_made = True
        return slot

    def _made(self, groups: ControlGroups, client: str) -> Slot | None:
        """Create a slot; None, with everything undone, when the system refuses one of its parts."""
        self._last += 1
        above = self._clients.get(client) or f"client-{self._last}"
        name = f"{above}/{self._last}"
        limits = self.limits
        if client not in self._clients and not groups.make(
            above, processes=limits.processes_of_client, memory=limits.memory
        ):
            return None
        self._clients[client] = above
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        launcher = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            _anchor(theirs, launcher, self._control, groups.places(name))
        theirs.close()
        try:
            if groups.make(name) and groups.enter(name, pid):
                groups.end_with_one(name)
                slot = self.by_anchor[pid] = Slot(name, client, groups, pid, ours)
                return slot
        except OSError:
            # The counters could not be opened: too many open files.
            pass
        send(pid, SIGKILL)
        ours.close()
        groups.remove(name)
        return None

    def _retire(self) -> None:
        """Remove the oldest free slots when there are many."""
        free = [slot for slot in self.by_anchor.values() if slot.is_free]
        for slot in free[: max(0, len(free) - _MAX_FREE)]:
            # The anchor ends at end-of-file on its link, and is reaped like any child.
            slot.is_free = False
            slot.link.close()


def _anchor(link: _socket.socket, launcher: int, control: _socket.socket, places: list[str]) -> None:
    """In the anchor: fork a child per message until the launcher closes the link. Never returns."""
    try:
        libc.prctl(PR_SET_NAME, _ANCHOR_NAME, 0, 0, 0)
        libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:
            return
        # Where permitted: the OOM killer then ends the command, not the anchor.
        write("/proc/self/oom_score_adj", "-1000")
        kept = {0, 1, 2, link.fileno(), control.fileno()}
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # pathlib is slow to import
            if int(name) not in kept:
                _close(int(name))
        how = CloneArguments(flags=_CLONE_PARENT)
        while True:
            data, ancillary, _, _ = link.recvmsg(128, _socket.CMSG_SPACE(12), _socket.MSG_CMSG_CLOEXEC)
            if not data:
                return
            rights = ancillary[0][2]
            fds = [int.from_bytes(rights[at : at + 4], sys.byteorder) for at in range(0, len(rights), 4)]
            pid = libc.syscall(_CLONE3, ctypes.byref(how), ctypes.sizeof(how))
            if pid == 0:
                link.close()
                gate, maps = _socket.socket(fileno=fds[0]), None
                if len(fds) > 1:
                    maps = IdMaps(fds[1], _socket.socket(fileno=fds[2]))
                become(int(data), gate, launcher, control, places, maps)
            for fd in fds:
                os.close(fd)
            link.send(str(pid if pid > 0 else -ctypes.get_errno()).encode())
    finally:
        os._exit(0)


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return
