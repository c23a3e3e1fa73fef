"""Waits for a process's output: until a pattern matches (by ripgrep's linear-time engine), it is silent, or it has ended."""

import math
import re
import time
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from computer_linker.computer.base import Computer
from computer_linker.errors import InvalidRequest, ProviderUnavailable
from computer_linker.providers.processes.echo import ESCAPES
from computer_linker.providers.processes.runner import Limits, Runner
from computer_linker.providers.sandbox.boundary import SpawnPlan
from computer_linker.providers.search.ripgrep import program
from computer_linker.services import Services

MAX_TAIL = 262_144
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
WaitEnd = Literal["text", "output", "silence", "end", "time"]
"""Why a wait ended: the pattern appeared, any output came, it was silent, the process ended, or the time was over."""


@dataclass(frozen=True, slots=True)
class Until:
    """What to wait for; whichever comes first. The end of the process always ends the wait."""

    pattern: str | None = None
    silence_s: float | None = None
    end: bool = False

    @property
    def is_any_output(self) -> bool:
        return self.pattern is None and self.silence_s is None and not self.end


class Awaited(Protocol):
    """What prints: a managed process, or an agent's session."""

    last_output: float

    @property
    def end(self) -> int:
        """The cursor after all output so far."""
        ...

    @property
    def is_running(self) -> bool: ...

    def printed(self, since: int, limit: int) -> bytes:
        """The last output since a cursor, without the echo of what was typed."""
        ...

    async def changed(self, wait_s: float) -> None:
        """Return when there is more output, at its end, or after the time."""
        ...


class Waiting:
    """Matches output against a caller's pattern, which never runs in this process."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @classmethod
    def open(cls, services: Services) -> Self:
        services.use(Computer)
        return cls(services.use(Runner))

    async def wait(self, source: Awaited, until: Until, since: int, wait_s: float) -> WaitEnd:
        """Wait for the output since a cursor, without the echo of what was typed. Returns what came first."""
        started, seen = time.monotonic(), -1
        deadline = started + wait_s
        while True:
            if source.end != seen:
                seen = source.end
                if await self._has_come(source, until, since):
                    return "output" if until.pattern is None else "text"
            if not source.is_running and source.end == seen:
                return "end"
            now, quiet_at = time.monotonic(), math.inf
            if until.silence_s is not None:
                quiet_at = max(started, source.last_output) + until.silence_s
            if quiet_at <= now:
                return "silence"
            if now >= deadline:
                return "time"
            if source.end == seen:
                await source.changed(min(deadline, quiet_at) - now)

    async def _has_come(self, source: Awaited, until: Until, since: int) -> bool:
        if until.pattern is None and not until.is_any_output:
            return False
        text = source.printed(since, MAX_TAIL)
        return bool(text) if until.pattern is None else await self._matches(until.pattern, plain(text))

    async def _matches(self, pattern: str, text: bytes) -> bool:
        if not _SPECIAL.search(pattern):
            return pattern.encode("utf-8", "replace") in text
        rg = program()
        if rg is None:
            raise ProviderUnavailable("Patterns need ripgrep; plain text works without it.", remedy="Install ripgrep.")
        line = (str(rg), "--no-config", "--quiet", "--text", "--multiline", "--crlf", "-e", pattern, "-")
        outcome = await self._runner.run(SpawnPlan(argv=line), {}, Limits(10, 4000), stdin=text)
        if outcome.exit_code > 1 or outcome.timed_out:
            raise InvalidRequest("`waitFor` is not a pattern this service can match.", field="waitFor")
        return outcome.exit_code == 0


def plain(data: bytes) -> bytes:
    """Output without terminal escape sequences."""
    return ESCAPES.sub(b"", data)
