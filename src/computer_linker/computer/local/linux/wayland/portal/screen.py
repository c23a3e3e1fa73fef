"""Screen through the desktop portal, where the compositor offers no capture of its own (GNOME, KDE).

Unproven: the portal asks the person, and no test here can answer its dialog.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from anyio import to_thread

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.local.linux.wayland.connection import Connection
from computer_linker.computer.local.linux.wayland.outputs import Outputs
from computer_linker.computer.local.linux.wayland.portal.bus import Answer, BusRefusal, SessionBus
from computer_linker.errors import (
    InvalidRequest,
    OsPermissionRequired,
    TimedOut,
    UnsupportedPlatform,
)
from computer_linker.model.geometry import Display, Rect

_SCREENSHOT = "org.freedesktop.portal.Screenshot.Screenshot"
_CONSENT_S = 15.0


class PortalScreen:
    """Displays from the compositor, pixels from org.freedesktop.portal.Screenshot."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def displays(self) -> list[Display]:
        """The outputs from left to right."""
        return await self._connection.run(lambda connection: connection.part(Outputs).displays())

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        """A portal screenshot of the whole desktop, cropped to the area."""
        layout = await self._connection.run(lambda connection: connection.part(Outputs).layout())
        wanted = layout if area is None else area.intersection(layout)
        if wanted.is_empty:
            raise InvalidRequest("Nothing of that area is on a display.", desktop=layout.to_wire())
        picture = await self._screenshot()
        return await to_thread.run_sync(_cut, picture, layout, wanted)

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        """Not offered: the portal captures whole screens only."""
        raise UnsupportedPlatform("The desktop portal cannot capture one window.")

    def changes(self) -> AsyncIterator[list[Rect]]:
        """Not offered."""
        raise UnsupportedPlatform("Wayland does not tell programs what changed on the screen.")

    async def _screenshot(self) -> Path:
        bus = await SessionBus.open(self._connection.environ["DBUS_SESSION_BUS_ADDRESS"])
        try:
            return await _asked(bus)
        finally:
            await bus.aclose()


async def _asked(bus: SessionBus) -> Path:
    from dbus_fast import Variant

    answer = Answer()
    try:
        await bus.ask(_SCREENSHOT, "s", ("",), {"interactive": Variant("b", False)}, given=answer)
    except BusRefusal as error:
        raise UnsupportedPlatform(
            "This desktop offers no screen capture: neither the compositor nor a desktop portal has it. "
            "Install xdg-desktop-portal and the backend of your desktop."
        ) from error
    if not await answer.within(_CONSENT_S):
        raise TimedOut("The system's question about capturing the screen was not answered.")
    if answer.code != 0:
        raise OsPermissionRequired(
            "Capturing the screen was not allowed. Allow it when the system asks.", grant="screen"
        )
    return Path(unquote(urlparse(str(answer.results["uri"])).path))


def _cut(path: Path, layout: Rect, wanted: Rect) -> Pixmap:
    from PIL import Image

    with Image.open(path) as opened:
        image = opened.convert("RGB")
    # The portal saves the screenshot in the person's folders; it was made for us, so it is removed.
    path.unlink(missing_ok=True)
    whole = Pixmap(image.width, image.height, image.width * 4, b"", layout)
    part = whole.map.to_image(wanted)
    cut = image.crop((part.x, part.y, part.right, part.bottom))
    return Pixmap(cut.width, cut.height, cut.width * 4, cut.tobytes("raw", "BGRX"), wanted)
