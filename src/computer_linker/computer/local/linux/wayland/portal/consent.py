"""Remote control through the desktop portal: it asks the person once, and returns a token that is stored privately."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from computer_linker.computer.local.linux.wayland.portal.bus import (
    PORTAL,
    PORTAL_PATH,
    Answer,
    BusRefusal,
    SessionBus,
)
from computer_linker.computer.local.linux.wayland.portal.remote import BusBinding, RemoteInput, Screen, Stream
from computer_linker.config.store import write_whole
from computer_linker.errors import ConfigInvalid, OsPermissionRequired, ProviderUnavailable, TimedOut
from computer_linker.model.geometry import Rect

REMOTE = "org.freedesktop.portal.RemoteDesktop"
_CAST = "org.freedesktop.portal.ScreenCast"
_EVENTS = {
    "place": ("NotifyPointerMotionAbsolute", "oa{sv}udd"),
    "motion": ("NotifyPointerMotion", "oa{sv}dd"),
    "button": ("NotifyPointerButton", "oa{sv}iu"),
    "wheel": ("NotifyPointerAxisDiscrete", "oa{sv}ui"),
    "key": ("NotifyKeyboardKeysym", "oa{sv}iu"),
}
_KEYBOARD_AND_POINTER = 1 | 2
_MONITORS = 1
_UNTIL_REVOKED = 2
_PREPARED_S = 5.0
_CONSENT_S = 8.0
_TOKEN_NAME = "portal-token"  # noqa: S105  # a file's name
_LONGEST = 4096
_PLASMA_5_NOTCH = 10
"""KDE 5.27 forwards a step as a distance of 1, a tenth of a wheel notch; its axis distances are inverted."""


class PortalOpener:
    """Opens sessions through the portal. Mutter uses a stream's pixels as coordinates, KDE the desktop's units.

    An unanswered request stays open, and the next use finds its response.
    """

    def __init__(self, address: str, environ: Mapping[str, str], *, is_mutter: bool) -> None:
        self._address = address
        self._is_mutter = is_mutter
        self._steps_per_notch = _PLASMA_5_NOTCH if environ.get("KDE_SESSION_VERSION") == "5" else 1
        self._token = _Token(environ)
        self._pending: _PendingSession | None = None

    async def open(self, screens: list[Screen]) -> RemoteInput:
        """A session the person agreed to."""
        if self._pending is None or not self._pending.bus.is_connected:
            self._pending = await _PendingSession.ask(self._address, self._token.read())
        pending = self._pending
        if not await pending.answer.within(_CONSENT_S):
            raise _refused("Nobody has answered yet")
        self._pending = None
        if pending.answer.code != 0:
            await pending.bus.aclose()
            raise _refused("Remote control was not allowed")
        self._token.keep(pending.answer.results.get("restore_token"))
        if not self._is_mutter:
            screens = [replace(screen, pixels_per_unit=1.0) for screen in screens]
        return await pending.opened(screens, self._steps_per_notch)

    async def aclose(self) -> None:
        """Withdraw a request that is still open."""
        pending, self._pending = self._pending, None
        if pending is not None:
            await pending.bus.aclose()


class _PendingSession:
    """A session that waits for the person's decision."""

    def __init__(self, bus: SessionBus, session: str) -> None:
        self.bus = bus
        self.answer = Answer()
        self._session = session

    @classmethod
    async def ask(cls, address: str, token: str) -> "_PendingSession":
        bus = await SessionBus.open(address)
        try:
            return await cls._ask(bus, token)
        except BusRefusal as error:
            await bus.aclose()
            raise ProviderUnavailable(
                "The desktop portal does not offer remote control. Install the portal's backend of your desktop."
            ) from error
        except BaseException:
            await bus.aclose()
            raise

    @classmethod
    async def _ask(cls, bus: SessionBus, token: str) -> "_PendingSession":
        from dbus_fast import Variant

        options = {"session_handle_token": Variant("s", "linker")}
        made = await _prepared(bus, f"{REMOTE}.CreateSession", "", (), options)
        pending = cls(bus, str(made["session_handle"]))
        devices = {"types": Variant("u", _KEYBOARD_AND_POINTER), "persist_mode": Variant("u", _UNTIL_REVOKED)}
        if token:
            devices["restore_token"] = Variant("s", token)
        await _prepared(bus, f"{REMOTE}.SelectDevices", "o", (pending._session,), devices)
        sources = {"types": Variant("u", _MONITORS), "multiple": Variant("b", True)}
        await _prepared(bus, f"{_CAST}.SelectSources", "o", (pending._session,), sources)
        await bus.ask(f"{REMOTE}.Start", "os", (pending._session, ""), {}, given=pending.answer)
        return pending

    async def opened(self, screens: list[Screen], steps_per_notch: int) -> RemoteInput:
        results = self.answer.results
        if results.get("devices", 0) & _KEYBOARD_AND_POINTER != _KEYBOARD_AND_POINTER:
            await self.bus.aclose()
            raise _refused("The pointer or the keyboard was left out")
        streams = [_stream(one, screens) for one in results.get("streams", [])]
        binding = BusBinding(PORTAL, PORTAL_PATH, REMOTE, _EVENTS, (self._session, {}), steps_per_notch)
        remote = RemoteInput(self.bus, binding, streams)
        await self.bus.on_signal(self._session, "org.freedesktop.portal.Session.Closed", remote.end)
        return remote


class _Token:
    """The portal's restore token, in a private file of the state folder."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        named = environ.get("COMPUTER_LINKER_HOME") or f"{environ.get('HOME', '')}/.computer-linker"
        self._home = Path(os.path.expanduser(named))  # noqa: PTH111  # as the state folder is found elsewhere

    def read(self) -> str:
        try:
            return (self._home / _TOKEN_NAME).read_text("utf-8")[:_LONGEST]
        except (OSError, ValueError):
            return ""

    def keep(self, token: object) -> None:
        """Store the next token. Each is valid once; the session it opens returns the next one."""
        if self._home.is_dir():
            # Where it cannot be stored, the person is asked again.
            with suppress(OSError, ConfigInvalid):
                write_whole(self._home, _TOKEN_NAME, token.encode() if isinstance(token, str) else b"")


async def _prepared(
    bus: SessionBus, member: str, signature: str, values: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    """Make a portal request that needs no decision."""
    answer = Answer()
    await bus.ask(member, signature, values, options, given=answer)
    if not await answer.within(_PREPARED_S):
        raise TimedOut("The desktop portal does not answer.")
    if answer.code != 0:
        raise _refused("Remote control was not allowed")
    return answer.results


def _stream(stream: tuple[int, dict[str, Any]], screens: list[Screen]) -> Stream:
    node, facts = stream
    x, y = facts["position"].value if "position" in facts else (0, 0)
    for screen in screens:
        if (screen.area.x, screen.area.y) == (x, y):
            return Stream(node, screen.area, screen.pixels_per_unit)
    width, height = facts["size"].value if "size" in facts else (0, 0)
    return Stream(node, Rect(x=x, y=y, width=width, height=height))


def _refused(what: str) -> OsPermissionRequired:
    remedy = "Allow remote control, with pointer, keyboard and all screens, when the desktop asks; then retry."
    return OsPermissionRequired(f"{what}. {remedy}", grant="input", remedy=remedy)
