"""The provider of the kernel boundary, probed once by trying to cross it."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.shown_folders import SHOWN
from computer_linker.config.own_places import own_programs
from computer_linker.config.runtime import state_places
from computer_linker.errors import ProviderUnavailable
from computer_linker.home import MARK_NAME
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
from computer_linker.providers.sandbox.masks import MAX_CLOSED, Masks, known_masks
from computer_linker.providers.sandbox.places import SYSTEM
from computer_linker.providers.sandbox.planted import Plantings
from computer_linker.providers.sandbox.tree import Tree
from computer_linker.providers.sandbox.tree_cache import TreeCache
from computer_linker.services import Services
from computer_linker.system import os


def available_kinds(computer: Computer) -> tuple[Kind, ...]:
    """The boundaries this system could have, best first."""
    match _backend(computer):
        case "launcher":
            return ("bubblewrap", "landlock")
        case "portable" if seatbelt.is_available():
            return ("seatbelt",)
        case _:
            return ()


def _backend(computer: Computer) -> str:
    return computer.capabilities().facets["processes"].backend


_PROBE_AGAIN_S = 60.0
_JOB_OBJECT = "a job object ends a command with all it started; it confines neither files nor network"


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of scanning a command's folders: what to close in each, and the watch for planted names."""

    masks: dict[Folder, Masks] = field(default_factory=dict)
    planting: Watch | None = None
    release: Callable[[], None] = lambda: None
    """Call it when the program has ended or is not started after all; `wrap` leaves that to the plan."""


class Sandbox:
    """Wraps commands in the best boundary this machine supports."""

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
        self._kinds = available_kinds(computer) if kinds is None else tuple(kinds)
        self.probe_again_s = _PROBE_AGAIN_S
        self._boundary: Boundary | None = None
        self._failed_at: float | None = None
        self._probing = anyio.Lock()
        self._trees = TreeCache()
        self._plantings = Plantings(state)
        self._bwrap: str | None = None
        self._checked_for: Sequence[Scope] | None = None

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.use(Computer), services.home, scopes=lambda: services.config.scopes)

    @property
    def known(self) -> Boundary | None:
        """The probed boundary; None before the first probe."""
        return self._boundary

    async def probe(self) -> Boundary:
        """The boundary of this machine, probed on first use; a failure is probed again later."""
        if self._boundary is None or self._is_due():
            async with self._probing:
                if self._boundary is None or self._is_due():
                    self._boundary = await self._best()
        return self._boundary

    def _is_due(self) -> bool:
        """True when a probe failed a while ago: something temporary may have disturbed it."""
        return self._failed_at is not None and time.monotonic() - self._failed_at > self.probe_again_s

    async def scan(self, confinement: Confinement, boundary: Boundary) -> Scanned:
        """Scan the folders of a command that is about to start, in a worker thread.

        From here on protected names that appear in them are removed, until the plan is settled or released.
        """
        if os.scandir not in os.supports_fd:
            return Scanned()
        # Landlock and no boundary close no names inside a root; there the scan only finds planted names.
        closes_names = boundary.kind not in ("landlock", "none")
        folders = (*confinement.readable, *confinement.writable)
        release = SHOWN.show([folder.path for folder in folders] if closes_names else ())
        try:
            return replace(await self._scan(confinement, boundary, closes_names), release=release)
        except BaseException:
            release()
            raise

    async def _scan(self, confinement: Confinement, boundary: Boundary, closes_names: bool) -> Scanned:
        planted = [
            folder for folder in confinement.writable if not folder.rules.allow_protected and folder.view is None
        ]
        only = None if closes_names else planted
        if not planted and not (closes_names and confinement.readable):
            return Scanned(await self._masks(confinement, only))
        planting = self._plantings.begin(leaves_orphans=boundary.kind != "bubblewrap")

        def watch(folder: Folder, tree: Tree, masks: Masks) -> None:
            state = next((place for place in tree.states if place in tree.folders), None)
            if state is not None and boundary.kind == "landlock":
                mark = "/".join((*state, MARK_NAME))
                raise _state_inside(
                    "The state folder of another service lies inside this scope's folder "
                    f"(the file {mark} marks it; if it is none, the owner can look at that file and remove it)"
                )
            # An overlay has names of its own, whose covers no change of the folder removes. Without reports from the kernel a
            # folder that is only read is not scanned again and again.
            closed = masks.closed if closes_names and folder.view is None else []
            if folder in planted or (closed and tree.is_watched):
                self._plantings.watch(planting, folder, tree, closed, may_plant=folder in planted)

        try:
            return Scanned(await self._masks(confinement, only, watch), planting)
        except BaseException:
            planting.end(lambda: None)
            raise

    async def _masks(
        self,
        confinement: Confinement,
        only: Sequence[Folder] | None = None,
        scanned: Callable[[Folder, Tree, Masks], None] = lambda _folder, _tree, _masks: None,
    ) -> dict[Folder, Masks]:
        """What to close in each folder, or in `only` some. `scanned` is called for each under its lock."""
        masks: dict[Folder, Masks] = {}
        folders = (*confinement.readable, *confinement.writable)
        most = MAX_CLOSED // max(1, len(folders))
        for folder in folders if only is None else only:
            tree = self._trees.tree(folder)
            async with tree.lock:
                found = _FolderScan(folder, tree, hide_sockets=not confinement.network, most=most)
                # Where nothing changed this takes microseconds; otherwise a worker thread scans.
                known = found.known()
                if known is None:
                    known = await anyio.to_thread.run_sync(found.scan, self._plantings, self._trees)
                masks[folder] = known
                scanned(folder, tree, known)
        return masks

    def wrap(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        env: dict[str, str],
        *,
        boundary: Boundary,
        scanned: Scanned,
        pty: bool = False,
    ) -> tuple[SpawnPlan, dict[str, str]]:
        """The plan and the environment that run exactly `argv` inside the boundary, by the result of `scan`."""
        plan, env = self._wrapped(argv, confinement, env, boundary, scanned, pty=pty)
        plan.planting = scanned.planting
        plan.releases.append(scanned.release)
        return plan, env

    def _wrapped(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        env: dict[str, str],
        boundary: Boundary,
        scanned: Scanned,
        *,
        pty: bool,
    ) -> tuple[SpawnPlan, dict[str, str]]:
        match boundary.kind:
            case "bubblewrap":
                assert self._bwrap is not None
                self._refuse_replaceable(self._bwrap)
                confinement = self._without_state(confinement)
                plan, env = bubblewrap.wrap(
                    self._bwrap, tuple(argv), confinement, scanned.masks, env, pty=pty, scan=self._masks
                )
            case "landlock":
                self._refuse_state_inside(confinement)
                plan, private = landlock.wrap(tuple(argv), confinement)
                env = {**env, **private}
            case "seatbelt":
                plan, private = seatbelt.wrap(tuple(argv), self._without_state(confinement), scanned.masks)
                env = {**env, **private}
            case _:
                return SpawnPlan(argv=tuple(argv), cwd_fd=confinement.cwd_fd), env
        plan.boundary = boundary.named(network_cut=not confinement.network)
        return plan, env

    def _refuse_state_inside(self, confinement: Confinement) -> None:
        """Refuse a root that holds the state or the program: Landlock cannot exclude parts of a granted folder."""
        state = Path(os.path.realpath(self.state))
        for folder in (*confinement.writable, *confinement.readable):
            if state_places(folder.path, state):
                raise _state_inside("The service's own state lies inside this scope's folder")
        if any(state_places(place, state) for place in confinement.programs):
            raise ProviderUnavailable(
                "The service's own state lies beside the program, and Landlock alone cannot keep a command out. "
                "Install bubblewrap, or move the state folder.",
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
        """The confinement without the service's state, under every path that a folder shows it by."""
        state = Path(os.path.realpath(self.state))
        folders = (*confinement.writable, *confinement.readable)
        shown = [str(Path(each.path, below)) for each in folders for below in state_places(each.path, state)]
        return replace(confinement, hidden=(*confinement.hidden, *dict.fromkeys((str(state), *shown))))

    async def aclose(self) -> None:
        await self._plantings.aclose()
        await anyio.to_thread.run_sync(self._trees.close)

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
        """Find bubblewrap in a system folder, where no scope could replace it."""
        from computer_linker.policy.writers import writer_of, writers_of

        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        found = [os.path.realpath(path) for folder in folders if (path := shutil.which("bwrap", path=folder))]
        inside, writers = tuple(f"{place}/" for place in SYSTEM), writers_of(self._scopes())
        trusted = (path for path in found if path.startswith(inside) and writer_of(path, writers) is None)
        self._bwrap = next(trusted, None)
        return self._bwrap is not None

    def _refuse_replaceable(self, bwrap: str) -> None:
        """Refuse a program that a scope can write: the config may have changed since the probe."""
        from computer_linker.policy.writers import writer_of, writers_of

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


def _state_inside(what: str) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"{what}, and Landlock alone cannot keep a command out. Install bubblewrap, or choose a smaller folder.",
        remedy="Install bubblewrap.",
    )


@dataclass(slots=True)
class _FolderScan:
    """Scans one folder for what to close in it."""

    folder: Folder
    tree: Tree
    hide_sockets: bool
    most: int

    def known(self) -> Masks | None:
        """The cached masks, if nothing changed since the last scan."""
        if not self.tree.is_quiet() or self.tree.fresh:
            return None
        kept = self.tree.kept.get((self.hide_sockets, self.most))
        return self._masks() if kept is not None and kept[0] == self.tree.version else None

    def scan(self, plantings: Plantings, trees: TreeCache) -> Masks:
        """Scan and compute the masks; blocking."""
        trees.sweep()
        plantings.scan(self.folder, self.tree, self.folder.fd)
        if not self.tree.is_quiet():
            # Something was removed just now.
            self.tree.scan(self.folder.fd)
        return self._masks()

    def _masks(self) -> Masks:
        return known_masks(self.folder, self.tree, hide_sockets=self.hide_sockets, most=self.most)
