"""Screen through the desktop portal, where the compositor offers no capture of its own (GNOME, KDE).

Unproven: the portal asks the person, and no test here can answer its dialog.
"""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import anyio
from anyio import to_thread

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.local.linux.wayland.connection import Connection
from computer_linker.computer.local.linux.wayland.outputs import Outputs
from computer_linker.errors import (
    InvalidRequest,
    OsPermissionRequired,
    ProviderUnavailable,
    TimedOut,
    UnsupportedPlatform,
)
from computer_linker.model.geometry import Display, Rect

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

_BUS = "org.freedesktop.portal.Desktop"
_PATH = "/org/freedesktop/portal/desktop"
_SCREENSHOT = "org.freedesktop.portal.Screenshot"
_CONSENT_S = 15.0


class PortalScreen:
    """Displays from the compositor, pixels from org.freedesktop.portal.Screenshot."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def displays(self) -> list[Display]:
        """The outputs from left to right."""
        return await self._connection.run(lambda connection: connection.part(Outputs).displays())

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        """The whole desktop as the portal gives it, cut to the area."""
        layout = await self._connection.run(lambda connection: connection.part(Outputs).layout())
        wanted = layout if area is None else area.intersection(layout)
        if wanted.is_empty:
            raise InvalidRequest("Nothing of that area is on a display.", desktop=layout.to_wire())
        picture = await self._screenshot()
        return await to_thread.run_sync(_cut, picture, layout, wanted)

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        """Not offered: the portal knows whole screens only."""
        raise UnsupportedPlatform("The desktop portal cannot capture one window.")

    def changes(self) -> AsyncIterator[list[Rect]]:
        """Not offered."""
        raise UnsupportedPlatform("Wayland does not tell programs what changed on the screen.")

    async def _screenshot(self) -> Path:
        from dbus_fast.aio import MessageBus

        address = self._connection.environ["DBUS_SESSION_BUS_ADDRESS"]
        try:
            bus = await MessageBus(bus_address=address).connect()
        except OSError as error:
            raise ProviderUnavailable("The session bus does not answer, so the portal cannot be asked.") from error
        try:
            return await _asked(bus)
        finally:
            bus.disconnect()


async def _asked(bus: "MessageBus") -> Path:
    from dbus_fast import Message, MessageType, Variant

    token = f"linker_{secrets.token_hex(6)}"
    sender = (bus.unique_name or "").removeprefix(":").replace(".", "_")
    request = f"/org/freedesktop/portal/desktop/request/{sender}/{token}"
    answered, answer = anyio.Event(), list[Any]()

    def seen(message: Any) -> bool:
        if message.message_type is MessageType.SIGNAL and message.path == request and message.member == "Response":
            answer.extend(message.body)
            answered.set()
            return True
        return False

    bus.add_message_handler(seen)
    rule = f"type='signal',interface='org.freedesktop.portal.Request',path='{request}'"
    await _call(bus, Message("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch",
                             signature="s", body=[rule]))  # fmt: skip
    options = {"handle_token": Variant("s", token), "interactive": Variant("b", False)}
    await _call(bus, Message(_BUS, _PATH, _SCREENSHOT, "Screenshot", signature="sa{sv}", body=["", options]))
    with anyio.move_on_after(_CONSENT_S):
        await answered.wait()
    if not answer:
        raise TimedOut("Nobody answered the system's question about capturing the screen.")
    if answer[0] != 0:
        raise OsPermissionRequired(
            "Capturing the screen was not allowed. Allow it when the system asks.", grant="screen"
        )
    return Path(unquote(urlparse(answer[1]["uri"].value).path))


async def _call(bus: "MessageBus", message: Any) -> None:
    from dbus_fast import MessageType

    reply = await bus.call(message)
    if reply is None or reply.message_type is MessageType.ERROR:
        raise UnsupportedPlatform(
            "This desktop offers no screen capture: neither the compositor nor a desktop portal has it. "
            "Install xdg-desktop-portal and the backend of your desktop."
        )


def _cut(path: Path, layout: Rect, wanted: Rect) -> Pixmap:
    from PIL import Image

    with Image.open(path) as opened:
        image = opened.convert("RGB")
    # The portal leaves the picture in the person's folders; it was made for us.
    path.unlink(missing_ok=True)
    whole = Pixmap(image.width, image.height, image.width * 4, b"", layout)
    part = whole.map.to_image(wanted)
    cut = image.crop((part.x, part.y, part.right, part.bottom))
    return Pixmap(cut.width, cut.height, cut.width * 4, cut.tobytes("raw", "BGRX"), wanted)
