"""Pixels from wlroots compositors by zwlr_screencopy, through memory shared with the compositor."""

import mmap
import os

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.local.linux.wayland.outputs import Output
from computer_linker.computer.local.linux.wayland.wire import Event, Wire
from computer_linker.errors import OsPermissionRequired, UnsupportedPlatform
from computer_linker.model.geometry import Rect

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
    """What the compositor said about one copy."""

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
