"""One connection to a compositor, used by one thread at a time, opened on first use and again after an error."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from anyio import to_thread

from computer_linker.computer.local.linux.halting import OneAtATime
from computer_linker.computer.local.linux.wayland.wire import Event, Wire
from computer_linker.errors import LinkError

T = TypeVar("T")
P = TypeVar("P")


class Connection:
    """Runs jobs against the compositor. Objects bound to a connection are created again when it is reopened."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self._wire: Wire | None = None
        self._parts: dict[type, Any] = {}
        self._thread = OneAtATime()

    async def run(self, work: Callable[["Connection"], T]) -> T:
        """Run `work(connection)` in a thread; a cancelled caller returns once the job has stopped sending presses."""
        return await self._thread.run(lambda: self._worked(work))

    @property
    def wire(self) -> Wire:
        """The open wire (on the working thread)."""
        if self._wire is None:
            self._wire = Wire(self.environ)
            self._parts.clear()
        return self._wire

    def part(self, kind: Callable[[Wire], P]) -> P:
        """An object bound to this connection, such as a virtual pointer; created once per connection."""
        wire = self.wire
        if kind not in self._parts:
            self._parts[kind] = kind(wire)  # type: ignore[index]  # keyed by its own class
        return self._parts[kind]  # type: ignore[index,no-any-return]  # keyed by its own class

    async def aclose(self) -> None:
        """Close the connection; the next use opens another."""
        await to_thread.run_sync(self._close)

    def _worked(self, work: Callable[["Connection"], T]) -> T:
        try:
            return work(self)
        except LinkError as error:
            if error.code in ("provider_unavailable", "execution_failed"):
                # A protocol error ends a Wayland connection: the next use needs a new one.
                self._drop()
            raise

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _close(self) -> None:
        with self._thread.lock:
            self._drop()


# The Wayland seat: the input devices that applications see.

POINTER, KEYBOARD = 1, 2
_NOTICED_S = 0.15


class Seat:
    """The first seat and its devices."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._devices = 0
        self.number = wire.bind("wl_seat", 1, self._take)
        wire.roundtrip()

    def _take(self, event: Event) -> None:
        if event.opcode == 0:
            self._devices = event.unsigned()

    def wait_noticed(self, had_before: bool) -> None:
        """After a first pointer or keyboard: give applications time to notice it, or they miss its first events."""
        self._wire.roundtrip()
        if not had_before:
            time.sleep(_NOTICED_S)

    def wait_for(self, devices: int) -> None:
        """Wait until the seat has all of these; raises when the compositor sends nothing for several seconds."""
        self._wire.until(lambda: self._devices & devices == devices)

    def has(self, device: int) -> bool:
        """True when the seat has such a device now."""
        self._wire.roundtrip()
        return bool(self._devices & device)
