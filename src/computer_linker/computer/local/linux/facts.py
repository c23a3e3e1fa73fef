"""Facts of this Linux session, and locking it."""

import os
import platform
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Literal

import anyio

from computer_linker.computer.facets.facts import Environment, InputSeen
from computer_linker.computer.facets.processes import Process
from computer_linker.computer.local.linux.process_list import all_processes
from computer_linker.errors import ProviderUnavailable, UnsupportedPlatform

Session = Literal["x11", "wayland", "none"]
_SAVERS = (
    ("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver"),
    ("org.gnome.ScreenSaver", "/org/gnome/ScreenSaver"),
)


class LinuxFacts:
    """Facts of a Linux desktop session."""

    def __init__(
        self, session: Session, environ: Mapping[str, str], watch: Callable[[], AsyncIterator[InputSeen]] | None = None
    ) -> None:
        self._session = session
        self._environ = environ
        self._watch = watch

    async def environment(self) -> Environment:
        """The kernel's release, the session and the desktop's name."""
        return Environment(
            system="linux",
            release=platform.release(),
            architecture=platform.machine(),
            session=self._session,
            desktop=self._environ.get("XDG_CURRENT_DESKTOP", "")[:64],
            locale=(self._environ.get("LC_ALL") or self._environ.get("LANG", ""))[:64],
        )

    async def processes(self) -> list[Process]:
        """Every process in /proc."""
        return await anyio.to_thread.run_sync(all_processes)

    async def lock_screen(self) -> None:
        """Ask the session's screen saver to lock."""
        address = self._environ.get("DBUS_SESSION_BUS_ADDRESS") or _default_bus()
        if address is None:
            raise UnsupportedPlatform("There is no session bus, so nothing can lock the screen.")
        for name, path in _SAVERS:
            if await _called(address, name, path):
                return
        raise ProviderUnavailable(
            "No screen saver answers on the session bus; install or start one to lock the screen."
        )

    def input(self) -> AsyncIterator[InputSeen]:
        """That input happened; never which key or button."""
        if self._watch is None:
            raise UnsupportedPlatform(
                "This compositor tells no program whether someone is there, so acts cannot notice a person's own hand. "
                "To stop them: computer-linker halt."
                if self._session == "wayland"
                else "There is no desktop here that would tell about input."
            )
        return self._watch()


def _default_bus() -> str | None:
    path = f"/run/user/{os.getuid()}/bus"
    return f"unix:path={path}" if os.path.exists(path) else None  # noqa: PTH110  # a socket's name, not a file


async def _called(address: str, name: str, path: str) -> bool:
    from dbus_fast import Message, MessageType
    from dbus_fast.aio import MessageBus

    bus = await MessageBus(bus_address=address).connect()
    try:
        reply = await bus.call(Message(destination=name, path=path, interface=name, member="Lock"))
        return reply is not None and reply.message_type == MessageType.METHOD_RETURN
    finally:
        bus.disconnect()
