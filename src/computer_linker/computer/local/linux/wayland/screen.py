"""Screen on wlroots compositors."""

from collections.abc import AsyncIterator

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.facets.windows import Windows
from computer_linker.computer.local.linux.wayland.connection import Connection
from computer_linker.computer.local.linux.wayland.outputs import Outputs
from computer_linker.computer.local.linux.wayland.screencopy import Screencopy
from computer_linker.errors import Conflict, InvalidRequest, NotFound, UnsupportedPlatform
from computer_linker.model.geometry import Display, Rect


class WaylandScreen:
    """Displays and pixels by wl_output and zwlr_screencopy."""

    def __init__(self, connection: Connection, windows: Windows | None) -> None:
        self._connection = connection
        self._windows = windows

    async def displays(self) -> list[Display]:
        """The outputs from left to right."""
        return await self._connection.run(lambda connection: connection.part(Outputs).displays())

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        """An area of the desktop; over several outputs it is put together."""
        return await self._connection.run(lambda connection: _capture(connection, area, cursor))

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        """A window that nothing covers: this protocol knows outputs, not windows."""
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
    """Several outputs as one picture, at the largest of their scales."""
    from PIL import Image

    scale = max(round(piece.map.scale, 4) for piece in pieces)
    width, height = round(area.width * scale), round(area.height * scale)
    whole = Pixmap(width, height, width * 4, b"", area)
    canvas = Image.new("RGBX", (width, height))
    for piece in pieces:
        # Read as RGBX although it is BGRX: only whole pixels are moved, so nothing has to be swapped.
        image = Image.frombuffer("RGBX", (piece.width, piece.height), piece.data, "raw", "RGBX", piece.stride, 1)
        target = whole.map.to_image(piece.area)
        canvas.paste(image.resize((target.width, target.height), Image.Resampling.NEAREST), (target.x, target.y))
    return Pixmap(width, height, width * 4, canvas.tobytes("raw", "RGBX"), area)
