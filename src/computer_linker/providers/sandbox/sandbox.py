"""Sandbox: the one provider of the kernel boundary, probed once by trying to cross it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.config.own_places import own_programs
from computer_linker.config.schema import Config
from computer_linker.errors import ProviderUnavailable
from computer_linker.model.scope import Scope
from computer_linker.providers.sandbox import bubblewrap, landlock, seatbelt
from computer_linker.providers.sandbox.boundary import NO_BOUNDARY, Boundary, Confinement, Kind, SpawnPlan
from computer_linker.providers.sandbox.looks import Looks
from computer_linker.providers.sandbox.masks import look_at
from computer_linker.providers.sandbox.placeholders import Placeholders


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


_JOB_OBJECT = "a job object ends a command with all it started; it confines neither files nor network"


class Parts(Protocol):
    """What a long-lived part asks of the service."""

    home: Path

    @property
    def config(self) -> Config: ...

    def use(self, kind: Any) -> Any: ...


class Sandbox:
    """Wraps commands in the best boundary this machine can give."""

    def __init__(
        self,
        computer: Computer,
        state: Path,
        kinds: Sequence[Kind] | None = None,
        scopes: Callable[[], Sequence[Scope]] = tuple,
    ) -> None:
        self.state = state
        self._scopes = scopes
        self.computer = computer
        self._kinds = kinds_here(computer) if kinds is None else tuple(kinds)
        self._boundary: Boundary | None = None
        self._probing = anyio.Lock()
        self._placeholders = Placeholders(state / "sandbox-placeholders")
        self._looks = Looks()
        self._bwrap: str | None = None
        self._checked_for: Sequence[Scope] | None = None

    @classmethod
    def open(cls, services: Parts) -> Self:
        return cls(services.use(Computer), services.home, scopes=lambda: services.config.scopes)

    @property
    def known(self) -> Boundary | None:
        """What the probe found, where it has run."""
        return self._boundary

    async def probe(self) -> Boundary:
        """The boundary that holds here, measured on first use by trying to cross it."""
        if self._boundary is None:
            async with self._probing:
                if self._boundary is None:
                    self._boundary = await self._best()
        return self._boundary

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
                assert self._bwrap is not None
                self._refuse_replaceable(self._bwrap)
                confinement = self._without_state(confinement)
                plan = bubblewrap.wrap(self._bwrap, tuple(argv), confinement, self._placeholders, self._looks, pty=pty)
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

    def _refuse_state_inside(self, confinement: Confinement) -> None:
        """Landlock takes nothing away from what a root gives, so neither the state nor the program must lie in one."""
        state = os.path.realpath(self.state)
        for folder in (*confinement.writable, *confinement.readable):
            if state == folder.path or state.startswith(folder.path.rstrip("/") + "/"):
                raise ProviderUnavailable(
                    "The service's own state lies inside this scope's folder, and Landlock alone cannot keep a command out. "
                    "Install bubblewrap, or choose a smaller folder.",
                    remedy="Install bubblewrap.",
                )
        for folder in confinement.writable:
            if any(place.startswith(folder.path.rstrip("/") + "/") for place in own_programs()):
                raise ProviderUnavailable(
                    "The service's own program lies inside this scope's folder, and Landlock alone cannot keep a command from "
                    "changing it. Install bubblewrap, or choose a smaller folder.",
                    remedy="Install bubblewrap.",
                )

    def _without_state(self, confinement: Confinement) -> Confinement:
        hidden = (*confinement.hidden, os.path.realpath(self.state), str(self.state))
        return replace(confinement, hidden=tuple(dict.fromkeys(hidden)))

    async def aclose(self) -> None:
        self._placeholders.close()

    async def _best(self) -> Boundary:
        from computer_linker.providers.sandbox.probe import crossed

        reasons = [_JOB_OBJECT] if _backend(self.computer) == "job object" else []
        for kind in self._kinds:
            if kind == "bubblewrap" and not await self._has_bubblewrap():
                reasons.append("bubblewrap is not installed, or too old to bind by descriptor")
                continue
            found = await crossed(self, Boundary(kind, files=True))
            if found.holds:
                return found
            reasons.append(f"{kind}: {found.detail}")
        return Boundary("none", detail="; ".join(reasons) or NO_BOUNDARY.detail)

    async def _has_bubblewrap(self) -> bool:
        from computer_linker.providers.processes.programs import trusted_program

        found = trusted_program("bwrap", self._scopes(), os.environ)
        if found is None:
            return False
        self._bwrap = found
        return await anyio.to_thread.run_sync(bubblewrap.binds_by_descriptor, found)

    def _refuse_replaceable(self, bwrap: str) -> None:
        """The config may have changed since the probe, and a scope may reach the program now."""
        from computer_linker.providers.processes.writers import writer_of, writers_of

        scopes = self._scopes()
        if scopes is self._checked_for:
            return
        scope = writer_of(bwrap, writers_of(scopes))
        if scope is not None:
            raise ProviderUnavailable(
                f"bubblewrap lies in the folders of scope {scope}, which could have replaced it.",
                remedy="Install bubblewrap outside every scope, or choose a smaller folder for that scope.",
            )
        self._checked_for = scopes
