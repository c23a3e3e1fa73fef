"""The interface of an agent program: its command line, its output format, and its errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from computer_linker.providers.agents.events import Event
from computer_linker.providers.processes.confinement import OwnPlace

Mode = Literal["read-only", "workspace-write"]


@dataclass(frozen=True, slots=True)
class Ask:
    """How one turn is to be run. The prompt is not part of it: it is sent through standard input."""

    mode: Mode
    network: bool
    """Whether the agent's commands may use the network; the agent itself always reaches its model."""
    is_confined: bool
    """True when our sandbox confines the agent."""
    where: str
    """The working folder, as an absolute path without links."""
    model: str | None = None
    thread_id: str | None = None
    """The conversation to continue."""
    has_own_root: bool = False
    """The boundary gives it a file tree of its own, in which its home can hold other things."""


@dataclass(frozen=True, slots=True)
class Line:
    """The command, the variables the agent itself needs, and its own folder."""

    argv: list[str]
    env: dict[str, str]
    home: str
    """Where it stores its login and its conversations; only it writes there."""
    shown: tuple[OwnPlace, ...] = field(default=(), kw_only=True)
    """All that it sees of its home; empty for the home itself. So it finds no conversation of another caller."""
    holds: str
    """What the agent's own sandbox enforces on its commands; empty when it has none."""
    warnings: list[str] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)
    """Executable files that its own folder must hold, by name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a turn did not succeed, and what would help."""

    code: Literal["login_required", "model_failed", "thread_not_found", "version", "failed"]
    message: str
    remedy: str


def not_understood(errors: str, install: str) -> Problem | None:
    """The problem of a program that rejects our arguments, or whose output is unknown."""
    low = errors.lower()
    if any(sign in low for sign in ("unexpected argument", "unknown option", "unrecognized option", NO_EVENTS.lower())):
        return Problem("version", errors[:600], f"The program is too old or too new for this service. {install}")
    return None


NO_EVENTS = "It ended without one event that is known here."


class Parser(Protocol):
    """Reads one turn's output, line by line."""

    def events(self, line: str) -> list[Event]:
        """The line's events; none for a line that is not of the program's event stream."""
        ...


class AgentProgram(Protocol):
    """An agent program. Stateless: one instance serves every run."""

    @property
    def name(self) -> str:
        """The program's name on the search path, and callers' name for it."""
        ...

    @property
    def oldest(self) -> tuple[int, ...]:
        """The oldest supported version."""
        ...

    @property
    def install(self) -> str:
        """How to get it."""
        ...

    def line(self, ask: Ask, environ: Mapping[str, str], state: Path) -> Line:
        """The command for one turn, without side effects. `state` is a private folder for this scope and agent."""
        ...

    def check(self, environ: Mapping[str, str]) -> None:
        """Raise ProviderUnavailable, with the remedy, where the program certainly cannot work."""
        ...

    def parser(self) -> Parser: ...

    def problem(self, errors: str, *, is_from_model: bool) -> Problem:
        """What the last error of a failed turn means. `is_from_model` when the program reported the turn itself as failed."""
        ...
