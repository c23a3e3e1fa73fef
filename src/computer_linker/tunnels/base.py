"""What every tunnel is: something that can be looked for, opened, asked, and closed."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from computer_linker.computer.facets.processes import Processes
from computer_linker.config.schema import Config, TunnelName

UrlSource = Literal["output", "config", "none"]


@dataclass(frozen=True, slots=True)
class Detected:
    """Whether a provider could be used here, and what would help when not."""

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
    """What a tunnel needs of the service: its state folder, its live config, its way to find and start programs."""

    home: Path
    config: Callable[[], Config]
    processes: Processes
    find: Callable[[str], str | None]
    owner_token: Callable[[], str | None] = lambda: None
    """The owner token in clear; None when only its digest is kept."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    look_s: float = 10.0
    """How often a tunnel that tells nothing by itself is asked how it is."""
    connect_s: float = 60.0
    """How long a program may take until it says that it is connected."""

    @property
    def folder(self) -> Path:
        """A private folder for what the programs write; their home, too, so that no settings of others meddle."""
        made = self.home / "tunnel"
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        return made


class Tunnel(Protocol):
    """One way to expose this computer. Opened at most once: a new try is a new object."""

    name: TunnelName
    forwards_owner_token: bool
    """True when the tunnel itself shows the owner token, so that it must be opened anew when the token changes."""

    def detect(self) -> Detected:
        """Whether it could be opened. Runs nothing."""
        ...

    async def expose(self, port: int) -> None:
        """Lead the tunnel to this loopback port; returns once it is connected.

        Raises ProviderUnavailable when it cannot be had as configured, ExecutionFailed when it did not come about.
        """
        ...

    def public_url(self) -> str | None:
        """The address under which clients reach this computer; None when there is none (yet)."""
        ...

    def status(self) -> dict[str, Any]:
        """What is known of it now: the process and the last lines it said, without secrets."""
        ...

    def is_connected(self) -> bool:
        """False while an open tunnel has lost its connection and looks for a new one by itself."""
        ...

    async def ended(self) -> str:
        """Wait until it is no longer open; why."""
        ...

    async def stop(self) -> None:
        """Close it, with every process it started. Nothing when it is closed already."""
        ...


def contract(name: str, command: str, url_source: UrlSource, note: str) -> dict[str, Any]:
    """One provider for clients and people that want to know what there is."""
    return {
        "name": name,
        "command": command,
        "lifecycle": ["detect", "status", "expose", "getPublicUrl", "stop"],
        "publicUrlSource": url_source,
        "note": note,
    }
