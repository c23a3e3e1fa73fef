"""Whether an agent program is recent enough: asked once for a file, and again when the file changes."""

import re
from pathlib import Path

from computer_linker.errors import ProviderUnavailable
from computer_linker.providers.agents.program import AgentProgram
from computer_linker.providers.processes.runner import Limits, Runner
from computer_linker.providers.sandbox.boundary import SpawnPlan

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_DEADLINE_S = 20.0


class Versions:
    """Remembers the versions that programs told."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._known: dict[tuple[str, int], str] = {}

    async def check(self, program: AgentProgram, path: str, search_path: str) -> None:
        """Raise ProviderUnavailable when the program is older than what is known of it. One that tells no version is tried."""
        told = await self._told(path, search_path)
        if told and tuple(int(part) for part in told.split(".")) < program.oldest:
            wanted = ".".join(map(str, program.oldest))
            raise ProviderUnavailable(
                f"{program.name} {told} cannot be used; {wanted} or newer is needed.",
                reason="version",
                found=told,
                needed=wanted,
                remedy=program.install,
            )

    async def _told(self, path: str, search_path: str) -> str:
        key = (path, _changed_ns(path))
        if key not in self._known:
            env = {"PATH": search_path, "HOME": "/nonexistent"}
            outcome = await self._runner.run(SpawnPlan(argv=(path, "--version")), env, Limits(_DEADLINE_S, 4000))
            found = _VERSION.search(outcome.stdout)
            self._known[key] = found.group() if found is not None and outcome.exit_code == 0 else ""
        return self._known[key]


def _changed_ns(path: str) -> int:
    return Path(path).stat().st_mtime_ns
