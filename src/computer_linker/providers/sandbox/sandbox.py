"""Sandbox: the one provider of the kernel boundary, probed once by trying to cross it."""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.errors import ProviderUnavailable
from computer_linker.providers.sandbox import bubblewrap, landlock, seatbelt
from computer_linker.providers.sandbox.boundary import NO_BOUNDARY, Boundary, Confinement, Folder, Kind, SpawnPlan
from computer_linker.providers.sandbox.closed_names import ClosedNames, closed_names
from computer_linker.providers.sandbox.looks import Looks
from computer_linker.providers.sandbox.masks import look_at
from computer_linker.providers.sandbox.placeholders import Held, Placeholders
from computer_linker.providers.sandbox.places import SYSTEM


def kinds_here(computer: Computer) -> tuple[Kind, ...]:
    """The boundaries this system could have, best first."""
    match _backend(computer):
        case "launcher":
            return ("bubblewrap", "landlock")
        case "portable" if seatbelt.is_here():
            return ("seatbelt",)
        case _:
            return ()


def _backend(computer: Computer) -> str:
    return computer.capabilities().facets["processes"].backend


_PROBE_AGAIN_S = 60.0
_JOB_OBJECT = "a job object ends a command with all it started; it confines neither files nor network"


class Parts(Protocol):
    """What a long-lived part asks of the service."""

    home: Path

    def use(self, kind: Any) -> Any: ...


class Sandbox:
    """Wraps commands in the best boundary this machine can give."""

    def __init__(self, computer: Computer, state: Path, kinds: Sequence[Kind] | None = None) -> None:
        self.state = state
        self.computer = computer
        self._kinds = kinds_here(computer) if kinds is None else tuple(kinds)
        self.probe_again_s = _PROBE_AGAIN_S
        self._boundary: Boundary | None = None
        self._failed_at: float | None = None
        self._probing = anyio.Lock()
        self._placeholders = Placeholders(state / "sandbox-placeholders")
        self._looks = Looks()
        self._bwrap: str | None = None

    @classmethod
    def open(cls, services: Parts) -> Self:
        return cls(services.use(Computer), services.home)

    @property
    def known(self) -> Boundary | None:
        """What the probe found, where it has run."""
        return self._boundary

    async def probe(self) -> Boundary:
        """The boundary that holds here, measured on first use by trying to cross it; a failure is measured again later."""
        if self._boundary is None or self._is_due():
            async with self._probing:
                if self._boundary is None or self._is_due():
                    self._boundary = await self._best()
        return self._boundary

    def _is_due(self) -> bool:
        """True when a boundary that should hold did not, a while ago: something may have disturbed the probe."""
        return self._failed_at is not None and time.monotonic() - self._failed_at > self.probe_again_s

    async def look(self, confinement: Confinement) -> None:
        """Look through large or unknown folders beforehand, away from the event loop, so that `wrap` has little left to do."""
        for folder in (*confinement.readable, *confinement.writable):
            if self._looks.is_slow(folder):
                await anyio.to_thread.run_sync(look_at, folder, self._looks)

    def wrap(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        env: dict[str, str],
        *,
        boundary: Boundary,
        pty: bool = False,
    ) -> tuple[SpawnPlan, dict[str, str]]:
        """The plan and the environment that run exactly `argv` inside the boundary."""
        match boundary.kind:
            case "bubblewrap":
                plan = self._in_bubblewrap(tuple(argv), self._without_state(confinement), pty=pty)
            case "landlock":
                self._refuse_state_inside(confinement)
                plan, private = landlock.wrap(tuple(argv), confinement)
                env = {**env, **private}
            case "seatbelt":
                plan, private = seatbelt.wrap(tuple(argv), self._without_state(confinement))
                env = {**env, **private}
            case _:
                return SpawnPlan(argv=tuple(argv), cwd_fd=confinement.cwd_fd), env
        plan.boundary = boundary.named(network_cut=not confinement.network)
        return plan, env

    def _in_bubblewrap(self, argv: tuple[str, ...], confinement: Confinement, *, pty: bool) -> SpawnPlan:
        assert self._bwrap is not None
        held: list[Held] = []
        try:
            plan = bubblewrap.wrap(self._bwrap, argv, confinement, self._closed(confinement, held), pty=pty)
        except BaseException:
            self._placeholders.let_go(held)
            raise

        async def look_again() -> None:
            await self.look(confinement)
            bubblewrap.plan_root(plan, confinement, self._closed(confinement, held))

        plan.look_again = look_again
        plan.releases.append(lambda: self._placeholders.let_go(held))
        return plan

    def _closed(self, confinement: Confinement, held: list[Held]) -> dict[Folder, ClosedNames]:
        """What to close in each folder of a command, as it is now."""
        names: dict[Folder, ClosedNames] = {}
        for folder in (*confinement.readable, *confinement.writable):
            is_writable = folder in confinement.writable
            names[folder] = closed_names(folder, self._looks, self._placeholders, is_writable=is_writable)
            held += names[folder].held
        return names

    def _refuse_state_inside(self, confinement: Confinement) -> None:
        """Landlock takes nothing away from what a root gives, so the state must not lie in one."""
        state = os.path.realpath(self.state)
        for folder in (*confinement.writable, *confinement.readable):
            if state == folder.path or state.startswith(folder.path.rstrip("/") + "/"):
                raise ProviderUnavailable(
                    "The service's own state lies inside this scope's folder, and Landlock alone cannot keep a command out. "
                    "Install bubblewrap, or choose a smaller folder.",
                    remedy="Install bubblewrap.",
                )

    def _without_state(self, confinement: Confinement) -> Confinement:
        return replace(confinement, hidden=(*confinement.hidden, os.path.realpath(self.state)))

    async def aclose(self) -> None:
        self._placeholders.close()

    async def _best(self) -> Boundary:
        from computer_linker.providers.sandbox.probe import crossed

        self._failed_at = None
        reasons = [_JOB_OBJECT] if _backend(self.computer) == "job object" else []
        for kind in self._kinds:
            if kind == "bubblewrap" and not self._has_bubblewrap():
                reasons.append("bubblewrap is not installed in a folder of the system")
                continue
            found = await crossed(self, Boundary(kind, files=True))
            if found.holds:
                return found
            self._failed_at = time.monotonic()
            reasons.append(f"{kind}: {found.detail}")
        return Boundary("none", detail="; ".join(reasons) or NO_BOUNDARY.detail)

    def _has_bubblewrap(self) -> bool:
        """Find it in a folder of the system: a staged root has no other, and no command could replace it there."""
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        found = [os.path.realpath(path) for folder in folders if (path := shutil.which("bwrap", path=folder))]
        inside = tuple(f"{place}/" for place in SYSTEM)
        self._bwrap = next((path for path in found if path.startswith(inside)), None)
        return self._bwrap is not None
