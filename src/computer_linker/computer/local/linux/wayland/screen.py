"""Screen on wlroots compositors."""

import mmap
import os
from collections.abc import AsyncIterator

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.facets.windows import Windows
from computer_linker.computer.local.linux.wayland.connection import Connection
from computer_linker.computer.local.linux.wayland.outputs import Output, Outputs
from computer_linker.computer.local.linux.wayland.wire import Event, Wire
from computer_linker.errors import Conflict, InvalidRequest, NotFound, OsPermissionRequired, UnsupportedPlatform
from computer_linker.model.geometry import Display, Rect

_BGRX = (0, 1)
"""wl_shm's argb8888 and xrgb8888, which are blue, green, red, unused in memory."""
_RGBX = (0x34324258, 0x34324241)
"""xbgr8888 and abgr8888: red and blue change places."""
_UPSIDE_DOWN = 1


class Screencopy:
    """Copies outputs into one buffer that is reused while the size stays."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._shm = wire.bind("wl_shm", 1)
        self._manager = wire.bind("zwlr_screencopy_manager_v1", 1)
        self._buffer: tuple[tuple[int, int, int, int], int, mmap.mmap] | None = None

    def copy(self, output: Output, area: Rect, *, cursor: bool) -> Pixmap:
        """A part of one output; `area` lies within it."""
        place = output.bounds
        state = _Copy()
        frame = self._wire.new(state.take)
        values = (frame, int(cursor), output.number, area.x - place.x, area.y - place.y, area.width, area.height)
        self._wire.request(self._manager, 1, "nioiiii", *values)
        self._wire.until(lambda: state.shape is not None or state.failed)
        if state.shape is not None:
            buffer, memory = self._shared(state.shape)
            self._wire.request(frame, 0, "o", buffer)
            self._wire.until(lambda: state.ready or state.failed)
        self._wire.request(frame, 1)
        if state.failed or state.shape is None:
            raise OsPermissionRequired("The compositor did not let the screen be captured.")
        return _pixmap(state, memory, area)

    def _shared(self, shape: tuple[int, int, int, int]) -> tuple[int, mmap.mmap]:
        if self._buffer is not None and self._buffer[0] == shape:
            return self._buffer[1], self._buffer[2]
        form, width, height, stride = shape
        size = stride * height
        descriptor = os.memfd_create("computer-linker-screen", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, size)
            memory = mmap.mmap(descriptor, size)
            pool, buffer = self._wire.new(), self._wire.new()
            self._wire.request(self._shm, 0, "nhi", pool, descriptor, size)
            self._wire.request(pool, 0, "niiiiu", buffer, 0, width, height, stride, form)
            self._wire.request(pool, 1)
        finally:
            os.close(descriptor)
        if self._buffer is not None:
            self._wire.request(self._buffer[1], 0)
        self._buffer = (shape, buffer, memory)
        return buffer, memory


class _Copy:
    """The compositor's events about one copy."""

    def __init__(self) -> None:
        self.shape: tuple[int, int, int, int] | None = None
        self.ready = False
        self.failed = False
        self.flags = 0

    def take(self, event: Event) -> None:
        match event.opcode:
            case 0:
                self.shape = (event.unsigned(), event.unsigned(), event.unsigned(), event.unsigned())
            case 1:
                self.flags = event.unsigned()
            case 2:
                self.ready = True
            case 3:
                self.failed = True


def _pixmap(state: _Copy, memory: mmap.mmap, area: Rect) -> Pixmap:
    assert state.shape is not None
    form, width, height, stride = state.shape
    data = memory[: stride * height]
    if state.flags & _UPSIDE_DOWN:
        data = b"".join(data[row * stride : (row + 1) * stride] for row in range(height - 1, -1, -1))
    if form in _RGBX:
        swapped = bytearray(data)
        swapped[0::4], swapped[2::4] = data[2::4], data[0::4]
        data = bytes(swapped)
    elif form not in _BGRX:
        raise UnsupportedPlatform(f"The compositor gives pixels in a form that is not known here ({form:#x}).")
    return Pixmap(width, height, stride, data, area)


class WaylandScreen:
    """Displays and pixels by wl_output and zwlr_screencopy."""

    def __init__(self, connection: Connection, windows: Windows | None) -> None:
        self._connection = connection
        self._windows = windows

    async def displays(self) -> list[Display]:
        """The outputs from left to right."""
        return await self._connection.run(lambda connection: connection.part(Outputs).displays())

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        """An area of the desktop, composed where it spans several outputs."""
        return await self._connection.run(lambda connection: _capture(connection, area, cursor))

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        """A window that nothing covers: this protocol captures outputs, not windows."""
        if self._windows is None:
            raise UnsupportedPlatform("This compositor does not tell where windows are.")
        stack = await self._windows.stack()
        for position, window in enumerate(stack):
            if window.id == window_id:
                if not window.is_visible:
                    raise Conflict("The window is on another workspace; focus it first.")
                if any(
                    not above.frame.intersection(window.bounds).is_empty
                    for above in stack[:position]
                    if above.is_visible
                ):
                    raise UnsupportedPlatform(
                        "Another window covers it, and Wayland shows only what is on the screen. Focus it first."
                    )
                return await self.capture(window.bounds, cursor=cursor)
        raise NotFound("There is no such window.", windowId=window_id[:64])

    def changes(self) -> AsyncIterator[list[Rect]]:
        """Not offered by this protocol."""
        raise UnsupportedPlatform("Wayland does not tell programs what changed on the screen.")


def _capture(connection: Connection, area: Rect | None, cursor: bool) -> Pixmap:
    outputs, copier = connection.part(Outputs), connection.part(Screencopy)
    outputs.displays()
    wanted = outputs.layout() if area is None else area.intersection(outputs.layout())
    pieces = [
        copier.copy(output, output.bounds.intersection(wanted), cursor=cursor)
        for output in outputs.all
        if not output.bounds.intersection(wanted).is_empty
    ]
    if not pieces:
        raise InvalidRequest("Nothing of that area is on a display.", desktop=outputs.layout().to_wire())
    if len(pieces) == 1 and pieces[0].area == wanted:
        return pieces[0]
    return _joined(wanted, pieces)


def _joined(area: Rect, pieces: list[Pixmap]) -> Pixmap:
    """Compose several outputs into one image, at the largest of their scales."""
    from PIL import Image

    scale = max(round(piece.map.scale, 4) for piece in pieces)
    width, height = round(area.width * scale), round(area.height * scale)
    whole = Pixmap(width, height, width * 4, b"", area)
    canvas = Image.new("RGBX", (width, height))
    for piece in pieces:
        # Read as RGBX although it is BGRX: only whole pixels are moved, so no channel has to be swapped.
        image = Image.frombuffer("RGBX", (piece.width, piece.height), piece.data, "raw", "RGBX", piece.stride, 1)
        target = whole.map.to_image(piece.area)
        canvas.paste(image.resize((target.width, target.height), Image.Resampling.NEAREST), (target.x, target.y))
    return Pixmap(width, height, width * 4, canvas.tobytes("raw", "RGBX"), area)
