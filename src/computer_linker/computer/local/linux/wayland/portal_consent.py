"""Remote control through the desktop portal: it asks the person once, and gives a token that is kept privately."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from computer_linker.computer.local.linux.wayland.portal_bus import (
    PORTAL,
    PORTAL_PATH,
    Answer,
    BusRefusal,
    SessionBus,
)
from computer_linker.computer.local.linux.wayland.portal_remote import Dialect, RemoteInput, Screen, Stream
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
"""KDE 5.27 hands a step on as a distance of one, a tenth of what a wheel does; its distances go the wrong way."""


class PortalRoad:
    """The portal. Mutter behind it counts places in a stream's pixels, KDE in the desktop's units.

    A question that nobody has answered yet stays open, and the next use finds its answer.
    """

    def __init__(self, address: str, environ: Mapping[str, str], *, is_mutter: bool) -> None:
        self._address = address
        self._is_mutter = is_mutter
        self._steps_a_notch = _PLASMA_5_NOTCH if environ.get("KDE_SESSION_VERSION") == "5" else 1
        self._token = _Token(environ)
        self._asked: _Asked | None = None

    async def open(self, screens: list[Screen]) -> RemoteInput:
        """A session the person agreed to."""
        if self._asked is None or not self._asked.bus.is_connected:
            self._asked = await _Asked.ask(self._address, self._token.read())
        asked = self._asked
        if not await asked.answer.within(_CONSENT_S):
            raise _refused("Nobody has answered yet")
        self._asked = None
        if asked.answer.code != 0:
            await asked.bus.aclose()
            raise _refused("Remote control was not allowed")
        self._token.keep(asked.answer.results.get("restore_token"))
        if not self._is_mutter:
            screens = [replace(screen, pixels_a_unit=1.0) for screen in screens]
        return await asked.opened(screens, self._steps_a_notch)

    async def aclose(self) -> None:
        """Take back a question that is still open."""
        asked, self._asked = self._asked, None
        if asked is not None:
            await asked.bus.aclose()


class _Asked:
    """A session that waits for the person's word."""

    def __init__(self, bus: SessionBus, session: str) -> None:
        self.bus = bus
        self.answer = Answer()
        self._session = session

    @classmethod
    async def ask(cls, address: str, token: str) -> "_Asked":
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
    async def _ask(cls, bus: SessionBus, token: str) -> "_Asked":
        from dbus_fast import Variant

        options = {"session_handle_token": Variant("s", "linker")}
        made = await _prepared(bus, f"{REMOTE}.CreateSession", "", (), options)
        asked = cls(bus, str(made["session_handle"]))
        devices = {"types": Variant("u", _KEYBOARD_AND_POINTER), "persist_mode": Variant("u", _UNTIL_REVOKED)}
        if token:
            devices["restore_token"] = Variant("s", token)
        await _prepared(bus, f"{REMOTE}.SelectDevices", "o", (asked._session,), devices)
        sources = {"types": Variant("u", _MONITORS), "multiple": Variant("b", True)}
        await _prepared(bus, f"{_CAST}.SelectSources", "o", (asked._session,), sources)
        await bus.ask(f"{REMOTE}.Start", "os", (asked._session, ""), {}, given=asked.answer)
        return asked

    async def opened(self, screens: list[Screen], steps_a_notch: int) -> RemoteInput:
        results = self.answer.results
        if results.get("devices", 0) & _KEYBOARD_AND_POINTER != _KEYBOARD_AND_POINTER:
            await self.bus.aclose()
            raise _refused("The pointer or the keyboard was left out")
        streams = [_stream(one, screens) for one in results.get("streams", [])]
        dialect = Dialect(PORTAL, PORTAL_PATH, REMOTE, _EVENTS, (self._session, {}), steps_a_notch)
        remote = RemoteInput(self.bus, dialect, streams)
        await self.bus.hear(self._session, "org.freedesktop.portal.Session.Closed", remote.end)
        return remote


class _Token:
    """The person's consent as the portal wrote it down, in a file of the state folder only we can read."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        named = environ.get("COMPUTER_LINKER_HOME") or f"{environ.get('HOME', '')}/.computer-linker"
        self._home = Path(os.path.expanduser(named))  # noqa: PTH111  # as the state folder is found elsewhere

    def read(self) -> str:
        try:
            return (self._home / _TOKEN_NAME).read_text("utf-8")[:_LONGEST]
        except (OSError, ValueError):
            return ""

    def keep(self, token: object) -> None:
        """Each token is good once; the next one comes with the session it opened."""
        if self._home.is_dir():
            # Where it cannot be kept, the person is asked again.
            with suppress(OSError, ConfigInvalid):
                write_whole(self._home, _TOKEN_NAME, token.encode() if isinstance(token, str) else b"")


async def _prepared(
    bus: SessionBus, member: str, signature: str, values: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    """A step of the portal that asks nobody."""
    answer = Answer()
    await bus.ask(member, signature, values, options, given=answer)
    if not await answer.within(_PREPARED_S):
        raise TimedOut("The desktop portal does not answer.")
    if answer.code != 0:
        raise _refused("Remote control was not allowed")
    return answer.results


def _stream(told: tuple[int, dict[str, Any]], screens: list[Screen]) -> Stream:
    node, facts = told
    x, y = facts["position"].value if "position" in facts else (0, 0)
    for screen in screens:
        if (screen.area.x, screen.area.y) == (x, y):
            return Stream(node, screen.area, screen.pixels_a_unit)
    width, height = facts["size"].value if "size" in facts else (0, 0)
    return Stream(node, Rect(x=x, y=y, width=width, height=height))


def _refused(what: str) -> OsPermissionRequired:
    remedy = "Allow remote control, with pointer, keyboard and all screens, when the desktop asks; then retry."
    return OsPermissionRequired(f"{what}. {remedy}", grant="input", remedy=remedy)
