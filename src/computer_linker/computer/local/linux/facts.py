"""Facts of this Linux session, its processes, and locking it."""

import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import anyio

from computer_linker.computer.facets.facts import Environment, InputSeen
from computer_linker.computer.facets.processes import Process
from computer_linker.errors import ProviderUnavailable, UnsupportedPlatform
from computer_linker.model.geometry import safe_title
from computer_linker.system.proc_files import read, stat_fields

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


_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def all_processes() -> list[Process]:
    """The processes by pid; one that ends meanwhile is left out."""
    booted = time.time() - float(read("/proc/uptime").split()[0])
    pids = sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [found for pid in pids if (found := _process(pid, booted)) is not None]


def _process(pid: int, booted: float) -> Process | None:
    fields = stat_fields(pid)
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None
    if len(fields) < 22:
        return None
    started = datetime.fromtimestamp(booted + int(fields[19]) / _TICK, UTC)
    return Process(
        pid=pid,
        parent=int(fields[1]),
        name=safe_title(read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip()),
        started_at=started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        is_own=owner == os.geteuid(),
        memory_bytes=int(fields[21]) * _PAGE,
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICK,
    )
