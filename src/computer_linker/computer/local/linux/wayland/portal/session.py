"""The remote control session of a desktop, opened on first use; every pressed key and button is released."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Literal, NamedTuple

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from computer_linker.computer.local.linux.wayland.connection import KEYBOARD, POINTER, Connection, Seat
from computer_linker.computer.local.linux.wayland.outputs import Output, Outputs
from computer_linker.computer.local.linux.wayland.portal.layout import Layout, LayoutWatch
from computer_linker.computer.local.linux.wayland.portal.remote import RemoteInput, Screen, SessionOpener, Stream, ended
from computer_linker.errors import InvalidRequest, LinkError, ProviderUnavailable
from computer_linker.model.geometry import Point

_RELEASE_S = 2.0
_NOTICED_S = 0.4


class Stroke(NamedTuple):
    """A key, by its keysym, or a button, by the kernel's number."""

    kind: Literal["key", "button"]
    number: int


class RemoteSession:
    """Input by one session, one act at a time. After a cancellation it presses nothing more and releases what is held."""

    def __init__(self, connection: Connection, opener: SessionOpener) -> None:
        self._connection = connection
        self._opener = opener
        self._remote: RemoteInput | None = None
        self._reached: list[Screen] = []
        self._turn = anyio.Lock()

    @asynccontextmanager
    async def act(self) -> AsyncIterator["RemoteSession"]:
        """Open the session and hold it exclusively."""
        async with self._turn:
            await self._open()
            yield self

    async def move(self, to: Point) -> None:
        """Put the pointer at a desktop point."""
        await checkpoint_if_cancelled()
        remote = self._live()
        await remote.move(self._stream(remote, to), float(to.x), float(to.y))

    async def turn(self, axis: int, steps: int) -> None:
        await checkpoint_if_cancelled()
        await self._live().turn(axis, steps)

    async def layout(self) -> Layout:
        """The current keyboard layout."""
        return await self._connection.run(lambda connection: connection.part(LayoutWatch).now())

    @asynccontextmanager
    async def held(self, strokes: Sequence[Stroke]) -> AsyncIterator[None]:
        """Press these in order while the body runs, and release them in reverse, also after an error."""
        remote, down = self._live(), list[Stroke]()
        try:
            for stroke in strokes:
                await checkpoint_if_cancelled()
                down.append(stroke)
                await _send(remote, stroke, down=True)
            yield
        finally:
            await self._release(remote, down)

    async def aclose(self) -> None:
        """End the session; the compositor releases whatever it still holds."""
        remote, self._remote = self._remote, None
        if remote is not None:
            await remote.aclose()
        await self._opener.aclose()

    async def _release(self, remote: RemoteInput, down: list[Stroke]) -> None:
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_RELEASE_S), suppress(LinkError):
                for stroke in reversed(down):
                    await _send(remote, stroke, down=False)
                return
            # A release failed: ending the session releases everything.
            await remote.aclose()

    async def _open(self) -> None:
        screens = await self._connection.run(_screens)
        if self._remote is not None and self._remote.is_ended and screens == self._reached:
            # Not because displays changed: the person stopped it, which stays so until the service restarts.
            raise ended()
        if self._remote is not None and self._remote.is_open and screens == self._reached:
            return
        if self._remote is not None:
            await self._remote.aclose()
        had = await self._connection.run(_devices)
        remote = await self._opener.open(screens)
        try:
            await self._try(remote, had)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await remote.aclose()
            raise
        self._remote, self._reached = remote, screens

    async def _try(self, remote: RemoteInput, had: bool) -> None:
        """Where there were no devices, wait for them, and give applications time to notice them."""
        if had:
            return
        await remote.create_devices()
        try:
            await self._connection.run(lambda connection: connection.part(Seat).wait_for(POINTER | KEYBOARD))
        except ProviderUnavailable as error:
            message = "The desktop opened remote control, but no pointer and keyboard came of it."
            raise ProviderUnavailable(message) from error
        await anyio.sleep(_NOTICED_S)

    def _live(self) -> RemoteInput:
        if self._remote is None:
            raise ProviderUnavailable("Remote control is not open.")
        return self._remote

    def _stream(self, remote: RemoteInput, point: Point) -> Stream:
        for stream in remote.streams:
            if stream.area.contains(point):
                return stream
        raise InvalidRequest("The point is not on a display that may be controlled.")


async def _send(remote: RemoteInput, stroke: Stroke, *, down: bool) -> None:
    await (remote.button if stroke.kind == "button" else remote.keysym)(stroke.number, down=down)


def _devices(connection: Connection) -> bool:
    return connection.part(Seat).has(POINTER) and connection.part(Seat).has(KEYBOARD)


def _screens(connection: Connection) -> list[Screen]:
    outputs = connection.part(Outputs)
    outputs.displays()
    return [_screen(output) for output in outputs.all if output.pixel_width]


def _screen(output: Output) -> Screen:
    # Mutter uses a stream's pixels as coordinates where it renders at the display's own scale.
    turned = output.transform % 2 == 1
    pixels = output.pixel_height if turned else output.pixel_width
    return Screen(output.name, output.bounds, pixels / max(1, output.bounds.width))
