"""Startup probe for remote control: finds what this desktop offers, and tries it where no person is asked."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import anyio

from computer_linker.computer.local.linux.atspi.provide import session_address
from computer_linker.computer.local.linux.wayland.connection import Connection
from computer_linker.computer.local.linux.wayland.portal.bus import (
    DBUS,
    DBUS_PATH,
    PORTAL,
    PORTAL_PATH,
    BusRefusal,
    SessionBus,
)
from computer_linker.computer.local.linux.wayland.portal.consent import REMOTE, PortalOpener
from computer_linker.computer.local.linux.wayland.portal.remote import MUTTER, MutterOpener, SessionOpener
from computer_linker.computer.local.linux.wayland.portal.session import RemoteSession
from computer_linker.errors import LinkError
from computer_linker.extras import remedy

_PROBE_S = 4.0
_NAMED_S = 3.0


@dataclass(frozen=True, slots=True)
class Found:
    """The remote control backend, or the reason why there is none."""

    opener: SessionOpener | None = None
    is_asking: bool = False
    """True when a person has to agree first."""
    reason: str = "Neither the compositor nor the desktop portal offers remote control."
    remedy: str = "Install xdg-desktop-portal and the backend of your desktop, or use an X11 session."


_LATE = Found(reason="The desktop did not answer in time.", remedy="Start the service again once the desktop is up.")


def find_remote_control(environ: Mapping[str, str], *, is_mutter: bool) -> Found:
    """The portal where it controls pointer and keyboard, else mutter's own interface when input by it really arrives."""
    address = session_address(environ)
    if address is None or find_spec("dbus_fast") is None:
        return Found(
            reason="Remote control needs the session bus and dbus-fast.",
            remedy=f"Start the service inside the desktop session. {remedy('desktop')}",
        )
    found: list[Found] = []

    def work() -> None:
        # A separate event loop: the caller may be inside one already.
        found.append(anyio.run(partial(_found, address, environ, is_mutter=is_mutter)))

    thread = threading.Thread(target=work, name="remote-control-probe", daemon=True)
    thread.start()
    thread.join(_PROBE_S + 1)
    return found[0] if found else _LATE


async def _found(address: str, environ: Mapping[str, str], *, is_mutter: bool) -> Found:
    with anyio.move_on_after(_PROBE_S):
        try:
            if await _portal_controls(address):
                return Found(PortalOpener(address, environ, is_mutter=is_mutter), is_asking=True)
            if is_mutter and await _offers_its_own(address):
                return await _tried(address, environ)
            return Found()
        except LinkError as error:
            return Found(reason=error.message)
    return _LATE


async def _portal_controls(address: str) -> bool:
    bus = await SessionBus.open(address)
    try:
        return bool(await bus.get(PORTAL, PORTAL_PATH, f"{REMOTE}.AvailableDeviceTypes") & 3 == 3)
    except BusRefusal:
        return False
    finally:
        await bus.aclose()


async def _offers_its_own(address: str) -> bool:
    """Wait for mutter's bus name, which it acquires a moment after it accepts clients."""
    bus = await SessionBus.open(address)
    try:
        taken = anyio.Event()
        await bus.on_signal(
            DBUS_PATH, f"{DBUS}.NameOwnerChanged", lambda arguments: taken.set() if arguments[0] == MUTTER else None
        )
        if await bus.has(MUTTER):
            return True
        with anyio.move_on_after(_NAMED_S):
            await taken.wait()
        return taken.is_set()
    finally:
        await bus.aclose()


async def _tried(address: str, environ: Mapping[str, str]) -> Found:
    """Open a session and wait for its devices at the seat; nothing is moved or pressed."""
    connection = Connection(environ)
    session = RemoteSession(connection, MutterOpener(address))
    try:
        async with session.act():
            return Found(MutterOpener(address))
    except LinkError as error:
        return Found(reason=error.message, remedy="Start pipewire in this session, then the service again.")
    finally:
        await session.aclose()
        await connection.aclose()
