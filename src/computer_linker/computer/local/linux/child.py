"""The service's side of one child of the launcher: waiting for its order, then running."""

import asyncio
import contextlib
import os
import signal
import socket
from typing import Any, Protocol

from computer_linker.computer.ending import Ending
from computer_linker.computer.facets.processes import Echo, Ended, Launch, NamesChanged, PtySize, SignalName, Usage
from computer_linker.computer.local.linux.child_streams import Streams, set_size
from computer_linker.computer.local.linux.input_state import echo_of, waits_for_input
from computer_linker.computer.local.linux.usage import usage_of
from computer_linker.errors import ExecutionFailed


class Owner(Protocol):
    """The connection to the launcher."""

    def send(self, message: dict[str, Any]) -> None: ...


class Ready:
    """A forked child that waits for its order on the socket `link`."""

    def __init__(self, number: int, pid: int, link: socket.socket, client: str) -> None:
        self.client = client
        self.id = number
        self.pid = pid
        self.link = link


class LinuxChild(Ending):
    """One child of the launcher."""

    def __init__(self, owner: Owner, ready: Ready, launch: Launch, streams: Streams) -> None:
        super().__init__()
        self.id = ready.id
        self.pid = ready.pid
        self.client = ready.client
        self._gate: socket.socket | None = ready.link
        self.stdin, self.stdout, self.stderr = streams.stdin, streams.stdout, streams.stderr
        self.failure: str | None = None
        self.names_changed = False
        self.namespace: int | None = None
        """The mount namespace of its root. Closed last, in a thread, because freeing a namespace blocks."""
        self.network = launch.staging.network if launch.staging is not None else None
        self._staged: asyncio.Future[Ended | None] | None = None
        self._streams = streams
        self._owner = owner
        self._wrapped = launch.wrapped
        self._is_pty = launch.pty is not None
        self.is_tunnel = launch.is_tunnel

    async def is_staged(self) -> None:
        """Return once its root is staged; raises when that fails, and nothing of the program has run."""
        self._staged = asyncio.get_running_loop().create_future()
        try:
            ended = await self._staged
        except BaseException:
            self.kill()
            self._streams.close_ours()
            raise
        if ended is None:
            return
        self._streams.close_ours()
        if self.names_changed:
            raise NamesChanged
        raise ExecutionFailed(f"The program could not be started: {ended.reason or 'its process was ended'}.")

    def has_staged(self, ended: Ended | None) -> None:
        """Wake `is_staged`; `ended` is set when the process ended first."""
        if self._staged is not None and not self._staged.done():
            self._staged.set_result(ended)

    def go(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            with gate, contextlib.suppress(OSError):
                gate.send(b"g")

    def has_ended(self, ended: Ended) -> None:
        """Notify every waiter of its end; called once by the connection to the launcher."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.close()
        self.has_staged(ended)
        super().has_ended(ended)
        namespace, self.namespace = self.namespace, None
        if namespace is not None:
            asyncio.get_running_loop().run_in_executor(None, os.close, namespace)

    def signal(self, name: SignalName) -> None:
        if self.ended is None:
            number = int(signal.Signals["SIG" + name.upper()])
            self._owner.send({"do": "signal", "id": self.id, "number": number, "wrapped": self._wrapped})

    def kill(self) -> None:
        if self.ended is None:
            self._owner.send({"do": "kill", "id": self.id})

    def usage(self) -> Usage | None:
        return usage_of(self.pid) if self.ended is None else None

    def echo(self) -> Echo:
        return echo_of(self.stdout) if self._is_pty and self.ended is None else "none"

    def waits_for_input(self) -> bool | None:
        if self.ended is not None:
            return False
        return waits_for_input(self.pid, self.stdin, is_pty=self._is_pty, is_wrapped=self._wrapped)

    def resize(self, size: PtySize) -> None:
        if self._is_pty:
            set_size(self.stdout, size)


def ended_of(status: int, failure: str | None, reached: tuple[tuple[str, int], ...]) -> Ended:
    """Decode the wait status the launcher reaped."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Ended(128 + number, _signal_name(number), failure, reached)
    return Ended(os.WEXITSTATUS(status), None, failure, reached)


def reason_of(number: int, step: str) -> str:
    """The error for a child that could not execute its program, from the errno and the step it was at."""
    if step == "user namespace":
        return f"this system gives the service no user namespace to build its root in ({os.strerror(number)})"
    if step == "mount":
        return f"this system does not let the service build its root ({os.strerror(number)})"
    return f"{os.strerror(number)} ({step})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
