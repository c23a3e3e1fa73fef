"""The launcher: a small process of its own that starts, reaps and ends commands for the service.

It imports the standard library alone (and its own few files), so it stays small and forks fast whatever the service holds.
Forking is the slow part of starting a program, so it forks ahead: each waiting child is handed to the service with a
socket, takes one order through it, and waits at the same socket (its gate) for the word to start.

It adopts every orphan (child subreaper), and when its control socket closes, because the service stopped or was
killed, it ends everything it ever started. Every child dies with the launcher by the kernel's own rule.

Messages are JSON, one a packet. In: fork, signal, kill. Out: ready (with the child's socket), failed, exit.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import time
from typing import Any

from computer_linker.computer.local.linux.crowd import make_crowd
from computer_linker.computer.local.linux.launched import IGNORED, PR_SET_CHILD_SUBREAPER, RUN_VARIABLE, become, libc
from computer_linker.computer.local.linux.proc_files import (
    children,
    descendants,
    is_sandbox_program,
    kill_tree,
    read,
    send,
    session_of,
)

_LOOK_AFTER_S = 0.02


def serve(control_fd: int) -> None:
    """Be the launcher until the service at the other end goes away."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for ignored in IGNORED:
        signal.signal(ignored, signal.SIG_IGN)
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    gc.disable()
    gc.freeze()
    Launcher(control).serve()


class Launcher:
    """Children by id, each with our copy of the service's end of its socket."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.crowd = make_crowd()
        self.last_id = 0
        self.ids: dict[int, int] = {}
        self.pids: dict[int, int] = {}
        # While we hold this end a child never reads end-of-file at its gate: a dead service must not open it.
        self.gates: dict[int, socket.socket] = {}
        self.strays_at: float | None = None

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
                ready = dict(poll.poll(None if self.strays_at is None else _LOOK_AFTER_S * 1000))
                if self.strays_at is not None and time.monotonic() >= self.strays_at:
                    self.end_strays()
                if woken in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(woken, 4096)
                    self.reap()
                if self.control.fileno() in ready and not self.take():
                    return
        finally:
            self.end_all()
            if self.crowd:
                with contextlib.suppress(OSError):
                    os.rmdir(self.crowd)  # noqa: PTH106  # pathlib is slow to import

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
                become(self.last_id, theirs, launcher_pid, self.control, self.crowd)
        self.ids[pid] = self.last_id
        self.pids[self.last_id] = pid
        self.gates[self.last_id] = ours
        self.tell({"event": "ready", "id": self.last_id, "pid": pid}, [ours.fileno()])

    def signal(self, child: int, number: int, *, past_sandbox: bool) -> None:
        """Signal the child's group and its descendants, but not the sandbox program that holds them."""
        pid = self.pids.get(child)
        if pid is None:
            return
        tree = descendants(pid)
        if past_sandbox:
            # The sandbox program and its first process would end everything at once.
            for inner in tree:
                if not is_sandbox_program(inner, pid):
                    send(inner, number)
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        for inner in tree:
            send(inner, number)

    def kill(self, child: int) -> None:
        pid = self.pids.get(child)
        if pid is None:
            return
        tree = descendants(pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        for inner in tree:
            send(inner, signal.SIGKILL)
        for stray in children(os.getpid()):
            if stray not in self.ids and self.owner(stray) == child:
                kill_tree(stray)

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
        if reaped and self.strays_at is None:
            # Soon rather than now: where hundreds end together, one look serves them all.
            self.strays_at = time.monotonic() + _LOOK_AFTER_S

    def end_strays(self) -> None:
        """End adopted orphans whose command has ended; an orphan of a running command lives on with it."""
        self.strays_at = None
        for pid in children(os.getpid()):
            if pid not in self.ids and self.owner(pid) is None:
                kill_tree(pid)

    def owner(self, pid: int) -> int | None:
        """The running command an orphan belongs to: by its session, else by the mark in its environment."""
        session = session_of(pid)
        if session in self.ids:
            return self.ids[session]
        mark = f"{RUN_VARIABLE}=".encode()
        for entry in read(f"/proc/{pid}/environ").split(b"\0"):
            if entry.startswith(mark) and entry[len(mark) :].isdigit():
                child = int(entry[len(mark) :])
                return child if child in self.pids else None
        return None

    def end_all(self) -> None:
        """The service is gone: end everything, again and again for what forked meanwhile."""
        for _ in range(300):
            tree = descendants(os.getpid())
            if not tree:
                return
            for pid in tree:
                send(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            time.sleep(0.01)

    def tell(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self.control, [json.dumps(message).encode()], fds or [])
