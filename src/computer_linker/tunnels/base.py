"""The interface of tunnel providers: detect, expose, status, stop."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from computer_linker.computer.facets.processes import Processes
from computer_linker.config.schema import Config, TunnelName

UrlSource = Literal["output", "config", "none"]
Reach = Literal["internet", "tailnet", "server", "provider"]
"""Who reaches the address: anyone, the machines of a tailnet, programs on the owner's server, or one company's products."""


@dataclass(frozen=True, slots=True)
class Detected:
    """Whether a provider can be used here, and what would help when not."""

    name: TunnelName
    available: bool
    program: str | None = None
    problem: str | None = None
    remedy: str | None = None

    def to_wire(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "available": self.available,
            "program": self.program,
            "problem": self.problem,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a tunnel needs of the service: its state folder, live config, and how to find and start programs."""

    home: Path
    config: Callable[[], Config]
    processes: Processes
    find: Callable[[str], str | None]
    owner_token: Callable[[], str | None] = lambda: None
    """The owner token in clear; None when only its digest is stored."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    poll_s: float = 10.0
    """The polling interval for a tunnel without events of its own."""
    connect_s: float = 60.0
    """How long a program may take to connect."""

    @property
    def folder(self) -> Path:
        """A private folder for files of the programs; their HOME, too, so that no other settings apply."""
        made = self.home / "tunnel"
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        return made


class Tunnel(Protocol):
    """One tunnel. It is opened at most once: a retry creates a new object."""

    name: TunnelName
    forwards_owner_token: bool
    """True when the tunnel itself sends the owner token, so that it must be reopened when the token changes."""

    def detect(self) -> Detected:
        """Whether it could be opened. Runs nothing."""
        ...

    async def expose(self, port: int) -> None:
        """Open the tunnel to this loopback port; returns once it is connected.

        Raises ProviderUnavailable when it cannot be opened as configured, ExecutionFailed when connecting failed.
        """
        ...

    def public_url(self) -> str | None:
        """The URL under which clients reach this computer; None when there is none (yet)."""
        ...

    def status(self) -> dict[str, Any]:
        """Return the process and its last lines of output, without secrets."""
        ...

    def is_connected(self) -> bool:
        """False while an open tunnel has lost its connection and reconnects by itself."""
        ...

    async def ended(self) -> str:
        """Wait until it is no longer open; returns the reason."""
        ...

    async def stop(self) -> None:
        """Close it, with every process it started. Does nothing when it is closed already."""
        ...


def contract(name: str, mode: str, command: str, *, url_source: UrlSource, reach: Reach, note: str) -> dict[str, Any]:
    """Describe one provider for clients and people: its mode, what it runs, and who reaches its address."""
    return {
        "name": name,
        "command": command,
        "lifecycle": ["detect", "status", "expose", "getPublicUrl", "stop"],
        "publicUrlSource": url_source,
        "modes": [{"name": mode, "command": command, "publicUrlSource": url_source, "reach": reach}],
        "note": note,
    }
