"""Waits until a process's output matches a pattern, by ripgrep's linear-time engine."""

import re
import time
from typing import Self

from computer_linker.computer.base import Computer
from computer_linker.errors import InvalidRequest, ProviderUnavailable
from computer_linker.providers.processes.managed import Managed
from computer_linker.providers.processes.runner import Limits, Runner
from computer_linker.providers.sandbox.boundary import SpawnPlan
from computer_linker.providers.search.ripgrep import program
from computer_linker.services import Services

_MAX_TAIL = 262_144
_PAUSE_S = 0.02
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78])")
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


class Waiting:
    """Matches output against a caller's pattern, which never runs in this process."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @classmethod
    def open(cls, services: Services) -> Self:
        services.use(Computer)
        return cls(services.use(Runner))

    async def until(self, managed: Managed, pattern: str, since: int, wait_s: float) -> bool:
        """True once the output since a cursor matches; False when the time is over or the process has ended."""
        deadline = time.monotonic() + wait_s
        seen = -1
        while True:
            if managed.ring.end != seen:
                seen = managed.ring.end
                if await self._matches(pattern, plain(managed.ring.tail(since, _MAX_TAIL))):
                    return True
            left = deadline - time.monotonic()
            if left <= 0 or (not managed.is_running and managed.ring.end == seen):
                return False
            if managed.ring.end == seen:
                await managed.changed(left)

    async def _matches(self, pattern: str, text: bytes) -> bool:
        if not _SPECIAL.search(pattern):
            return pattern.encode() in text
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
    return _ESCAPES.sub(b"", data)
