"""What an agent program must tell for the service to run it: how it is started, what it prints, what went wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from computer_linker.providers.agents.events import Event

Mode = Literal["read-only", "workspace-write"]


@dataclass(frozen=True, slots=True)
class Ask:
    """How one turn is to be run. The prompt is not part of it: it goes through standard input."""

    mode: Mode
    network: bool
    """Whether what the agent runs may use the network; the agent itself always reaches its model."""
    is_confined: bool
    """True when a kernel boundary of ours holds around the agent."""
    where: str
    """The working folder, as an absolute path without links."""
    model: str | None = None
    thread_id: str | None = None
    """The conversation to go on with."""


@dataclass(frozen=True, slots=True)
class Line:
    """The command, the variables the agent itself needs, and its own folder."""

    argv: list[str]
    env: dict[str, str]
    home: str
    """Where it keeps its login and its conversations; it alone writes there."""
    holds: str
    """What the agent's own sandbox holds around what it runs; empty when it has none."""
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
    """The problem of a program that does not know our arguments, or of whose output nothing was known."""
    low = errors.lower()
    if any(sign in low for sign in ("unexpected argument", "unknown option", "unrecognized option", NO_EVENTS.lower())):
        return Problem("version", errors[:600], f"The program is too old or too new for this service. {install}")
    return None


NO_EVENTS = "It ended without one event that is known here."


class Parser(Protocol):
    """Reads one turn's output, line by line."""

    def events(self, line: str) -> list[Event]:
        """What the line tells; nothing for a line that is not of the program's event stream."""
        ...


class AgentProgram(Protocol):
    """An agent program. Stateless: one instance serves every run."""

    @property
    def name(self) -> str:
        """The program's name on the search path, and the word callers use for it."""
        ...

    @property
    def oldest(self) -> tuple[int, ...]:
        """The oldest version whose arguments and events are known."""
        ...

    @property
    def install(self) -> str:
        """How to get it."""
        ...

    def line(self, ask: Ask, environ: Mapping[str, str], state: Path) -> Line:
        """The command for one turn; touches nothing. `state` is a private folder of the service for this scope and agent."""
        ...

    def check(self, environ: Mapping[str, str]) -> None:
        """Raise ProviderUnavailable, with the remedy, where it is certain that the program could not work."""
        ...

    def parser(self) -> Parser: ...

    def problem(self, errors: str, *, is_from_model: bool) -> Problem:
        """What the last error of a failed turn means. `is_from_model` when the turn itself was told to have failed."""
        ...
