"""Sandbox: the one provider of the kernel boundary, probed once by trying to cross it."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.config.own_places import own_programs
from computer_linker.config.schema import Config
from computer_linker.errors import ProviderUnavailable
from computer_linker.model.scope import Scope
from computer_linker.providers.sandbox import bubblewrap, landlock, seatbelt
from computer_linker.providers.sandbox.boundary import (
    NO_BOUNDARY,
    Boundary,
    Confinement,
    Folder,
    Kind,
    SpawnPlan,
    Watch,
)
from computer_linker.providers.sandbox.looks import Looks
from computer_linker.providers.sandbox.masks import MAX_CLOSED, Masks, known_masks
from computer_linker.providers.sandbox.places import SYSTEM
from computer_linker.providers.sandbox.planted import Plantings
from computer_linker.providers.sandbox.tree import Tree


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

    @property
    def config(self) -> Config: ...

    def use(self, kind: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at the folders of a command found: what to close in each, and who takes away what it plants."""

    masks: dict[Folder, Masks] = field(default_factory=dict)
    planting: Watch | None = None


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
        self.probe_again_s = _PROBE_AGAIN_S
        self._boundary: Boundary | None = None
        self._failed_at: float | None = None
        self._probing = anyio.Lock()
        self._looks = Looks()
        self._plantings = Plantings(state)
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
        """The boundary that holds here, measured on first use by trying to cross it; a failure is measured again later."""
        if self._boundary is None or self._is_due():
            async with self._probing:
                if self._boundary is None or self._is_due():
                    self._boundary = await self._best()
        return self._boundary

    def _is_due(self) -> bool:
        """True when a boundary that should hold did not, a while ago: something may have disturbed the probe."""
        return self._failed_at is not None and time.monotonic() - self._failed_at > self.probe_again_s

    async def look(self, confinement: Confinement, boundary: Boundary) -> Looked:
        """Look at the folders of a command that is about to start, away from the event loop.

        From here on protected names that appear in them are taken away, until the plan is settled or released.
        """
        if os.scandir not in os.supports_fd:
            return Looked()
        # Landlock and no boundary at all close no names inside a root; there only what is planted is looked for.
        closes_names = boundary.kind not in ("landlock", "none")
        planted = [folder for folder in confinement.writable if not folder.rules.allow_protected]
        masks = await self._masks(confinement, only=None if closes_names else planted)
        trees = [(folder, self._looks.tree(folder)) for folder in planted]
        orphans = boundary.kind != "bubblewrap"
        return Looked(masks, self._plantings.begin(trees, leaves_orphans=orphans) if trees else None)

    async def _masks(self, confinement: Confinement, only: Sequence[Folder] | None = None) -> dict[Folder, Masks]:
        """What to close in each folder (or in some) as it is now."""
        masks: dict[Folder, Masks] = {}
        folders = (*confinement.readable, *confinement.writable)
        most = MAX_CLOSED // max(1, len(folders))
        for folder in folders if only is None else only:
            tree = self._looks.tree(folder)
            is_writable = folder in confinement.writable
            async with tree.lock:
                found = _Finding(folder, tree, is_writable, hide_sockets=not confinement.network, most=most)
                # Where nothing changed this takes microseconds; all else is done by a thread.
                known = found.known()
                if known is None:
                    known = await anyio.to_thread.run_sync(found.look, self._plantings, self._looks)
                masks[folder] = known
        return masks

    def wrap(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        env: dict[str, str],
        *,
        boundary: Boundary,
        looked: Looked,
        pty: bool = False,
    ) -> tuple[SpawnPlan, dict[str, str]]:
        """The plan and the environment that run exactly `argv` inside the boundary, by what `look` found."""
        plan, env = self._wrapped(argv, confinement, env, boundary, looked, pty=pty)
        plan.planting = looked.planting
        return plan, env

    def _wrapped(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        env: dict[str, str],
        boundary: Boundary,
        looked: Looked,
        *,
        pty: bool,
    ) -> tuple[SpawnPlan, dict[str, str]]:
        match boundary.kind:
            case "bubblewrap":
                assert self._bwrap is not None
                self._refuse_replaceable(self._bwrap)
                confinement = self._without_state(confinement)
                plan = bubblewrap.wrap(self._bwrap, tuple(argv), confinement, looked.masks, pty=pty, look=self._masks)
            case "landlock":
                self._refuse_state_inside(confinement)
                plan, private = landlock.wrap(tuple(argv), confinement)
                env = {**env, **private}
            case "seatbelt":
                plan, private = seatbelt.wrap(tuple(argv), self._without_state(confinement), looked.masks)
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
        return replace(confinement, hidden=(*confinement.hidden, os.path.realpath(self.state)))

    async def aclose(self) -> None:
        await self._plantings.aclose()
        await anyio.to_thread.run_sync(self._looks.close)

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
        """Find it in a folder of the system, where no scope could replace it; a staged root shows it no other."""
        from computer_linker.providers.processes.writers import writer_of, writers_of

        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        found = [os.path.realpath(path) for folder in folders if (path := shutil.which("bwrap", path=folder))]
        inside, writers = tuple(f"{place}/" for place in SYSTEM), writers_of(self._scopes())
        trusted = (path for path in found if path.startswith(inside) and writer_of(path, writers) is None)
        self._bwrap = next(trusted, None)
        return self._bwrap is not None

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


@dataclass(slots=True)
class _Finding:
    """A look at one folder, and what to close in it."""

    folder: Folder
    tree: Tree
    is_writable: bool
    hide_sockets: bool
    most: int

    def known(self) -> Masks | None:
        """What the last look found, where it still holds and was worked out."""
        if not self.tree.is_quiet() or self.tree.fresh:
            return None
        kept = self.tree.kept.get((self.is_writable, self.hide_sockets, self.most))
        return self._masks() if kept is not None and kept[0] == self.tree.version else None

    def look(self, plantings: Plantings, looks: Looks) -> Masks:
        """Look, in a worker thread."""
        looks.sweep()
        plantings.look(self.folder, self.tree, self.folder.fd)
        if not self.tree.is_quiet():
            # Something was taken away just now.
            self.tree.look(self.folder.fd)
        return self._masks()

    def _masks(self) -> Masks:
        return known_masks(
            self.folder, self.tree, is_writable=self.is_writable, hide_sockets=self.hide_sockets, most=self.most
        )
