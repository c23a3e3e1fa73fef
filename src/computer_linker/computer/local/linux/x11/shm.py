"""Capture through shared memory (MIT-SHM): the server writes the pixels there, so no image crosses the socket."""

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from Xlib.display import Display

_EXTENSION = "MIT-SHM"
_Z_PIXMAP = 2
_ALL_PLANES = 0xFFFFFFFF
_IPC_PRIVATE, _IPC_CREAT, _IPC_RMID = 0, 0o1000, 0
_FAILED = ctypes.c_void_p(-1).value


class SharedImage:
    """One segment, shared with one display connection and reused for every capture."""

    def __init__(self, display: "Display", size: int) -> None:
        """Raises OSError or XError where memory cannot be shared, such as with a server in another container."""
        extension = display.query_extension(_EXTENSION)
        if extension is None or not extension.present:
            raise OSError("the server has no MIT-SHM")
        self.size = size
        self._display = display
        self._opcode = extension.major_opcode
        self._address = _new_segment_shared_by(self._attach, size)

    def _attach(self, segment_id: int) -> None:
        self._segment = self._display.display.allocate_resource_id()
        _requests().attach(self._display, self._opcode, self._segment, segment_id)

    def grab(self, drawable: int, x: int, y: int, width: int, height: int) -> bytes:
        """The pixels of a part of a drawable, four bytes each."""
        reply = _requests().get_image(self._display, self._opcode, drawable, (x, y, width, height), self._segment)
        return ctypes.string_at(self._address, reply.size)

    def close(self) -> None:
        """Detach the memory; the server detaches when the connection ends."""
        _libc().shmdt(self._address)


def _new_segment_shared_by(attach: Any, size: int) -> int:
    libc = _libc()
    segment_id = libc.shmget(_IPC_PRIVATE, size, _IPC_CREAT | 0o600)
    if segment_id < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    try:
        address: int = libc.shmat(segment_id, None, 0)
        if address == _FAILED:
            raise OSError(ctypes.get_errno(), "shmat")
        try:
            attach(segment_id)
        except BaseException:
            libc.shmdt(address)
            raise
        return address
    finally:
        # Marked for removal at once: it exists while a process is attached, and cannot leak.
        libc.shmctl(segment_id, _IPC_RMID, None)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
    libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    libc.shmat.restype = ctypes.c_void_p
    libc.shmdt.argtypes = [ctypes.c_void_p]
    libc.shmctl.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    return libc


class _Requests:
    """The two MIT-SHM requests that python-xlib lacks."""

    def __init__(self) -> None:
        from Xlib.protocol import rq

        class Attach(rq.Request):  # type: ignore[misc,unused-ignore]  # untyped base in the stubs
            _request = rq.Struct(
                rq.Card8("opcode"), rq.Opcode(1), rq.RequestLength(),
                rq.Card32("segment"), rq.Card32("shmid"), rq.Card8("read_only"), rq.Pad(3),
            )  # fmt: skip

        class GetImage(rq.ReplyRequest):  # type: ignore[misc,unused-ignore]  # untyped base in the stubs
            _request = rq.Struct(
                rq.Card8("opcode"), rq.Opcode(4), rq.RequestLength(),
                rq.Card32("drawable"), rq.Int16("x"), rq.Int16("y"), rq.Card16("width"), rq.Card16("height"),
                rq.Card32("plane_mask"), rq.Card8("format"), rq.Pad(3), rq.Card32("segment"), rq.Card32("offset"),
            )  # fmt: skip
            _reply = rq.Struct(
                rq.ReplyCode(), rq.Card8("depth"), rq.Card16("sequence_number"), rq.ReplyLength(),
                rq.Card32("visual"), rq.Card32("size"), rq.Pad(16),
            )  # fmt: skip

        self._attach, self._get_image = Attach, GetImage

    def attach(self, display: "Display", opcode: int, segment: int, segment_id: int) -> None:
        from Xlib.error import CatchError

        trap = CatchError()
        self._attach(
            display=display.display, onerror=trap, opcode=opcode, segment=segment, shmid=segment_id, read_only=0
        )
        display.sync()
        if (error := trap.get_error()) is not None:
            raise error

    def get_image(
        self, display: "Display", opcode: int, drawable: int, area: tuple[int, int, int, int], segment: int
    ) -> Any:
        x, y, width, height = area
        return self._get_image(
            display=display.display, opcode=opcode, drawable=drawable, x=x, y=y, width=width, height=height,
            plane_mask=_ALL_PLANES, format=_Z_PIXMAP, segment=segment, offset=0,
        )  # fmt: skip


@cache
def _requests() -> _Requests:
    return _Requests()
