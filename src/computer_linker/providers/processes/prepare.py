"""From a request to a plan: one argv, judged, resolved and confined, before anything is started."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Self

from computer_linker.computer.base import Computer
from computer_linker.errors import LinkError, NotFound, PermissionDenied
from computer_linker.model.capability import Capability
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal, account_of
from computer_linker.model.scope import Scope
from computer_linker.policy.commands import (
    is_ordinary,
    judge_access,
    judge_boundary,
    judge_command,
    judge_program,
)
from computer_linker.policy.engine import FolderAccess, ProcessRights, folder_access
from computer_linker.policy.writers import find_program, writers_of
from computer_linker.providers.processes import environment
from computer_linker.providers.processes.confinement import (
    ProgramAccess,
    confinement_for,
    kept_apart,
    limits_of,
    own_folders,
    real_path,
    refuse_partial,
)
from computer_linker.providers.processes.held_view import HeldView, ViewUse
from computer_linker.providers.processes.hosts import boundary_warnings, elevation_of, gates_of, judge_hosts
from computer_linker.providers.processes.programs import Programs
from computer_linker.providers.processes.shell import argv_of, judge_request, shell_of
from computer_linker.providers.sandbox.boundary import NO_BOUNDARY, Boundary, Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.sandbox import Sandbox, Scanned
from computer_linker.providers.search.ripgrep import program as ripgrep
from computer_linker.services import Services
from computer_linker.system import os
from computer_linker.vault.mask import Mask
from computer_linker.vault.vault import Vault

if TYPE_CHECKING:
    from computer_linker.providers.network.gates import CommandGate, Gates
    from computer_linker.providers.sandbox.inner_socket import InnerSocket

_CACHED_S = 5.0
_EMPTY_FOLDER = "/tmp"  # noqa: S108  # the sandbox's own: private, and empty when the command starts


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A requested command. `roots` are all the scope's roots, `cwd` lies in one of them."""

    scope: Scope
    principal: Principal
    """The caller, whose rights, not the scope's, decide what the command can access."""
    roots: tuple[RootedPath, ...]
    cwd: RootedPath
    command: str | list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    pty: bool = False
    program_access: ProgramAccess | None = None
    view: ViewUse | None = None
    """Takes the changes of the scope's folders instead of them."""
    any_of: frozenset[Capability] = frozenset({Capability.COMMAND_RUN})
    """The capabilities of which one allows it to run."""

    @property
    def access(self) -> FolderAccess:
        """What the command may do with the scope's folders."""
        return folder_access(self.principal, self.scope)

    @property
    def writes(self) -> bool:
        return self.access == "writable" if self.program_access is None else self.program_access.writes

    @property
    def lists_hosts(self) -> bool:
        """Whether its network is a list of hosts. The service's own programs have networks of their own."""
        return self.program_access is None and self.scope.policy.network_width == 1

    @property
    def has_network(self) -> bool:
        """Whether it has the whole network."""
        return self.scope.policy.network is True if self.program_access is None else self.program_access.network


@dataclass(slots=True)
class Prepared:
    """A command ready to spawn; `plan.release()` releases everything it holds."""

    argv: list[str]
    plan: SpawnPlan
    env: dict[str, str]
    boundary: str
    warnings: list[str]
    may_change: bool = True
    """False for a command that only reads, or sees no folder it could write."""

    @property
    def program(self) -> str:
        return self.argv[0].rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class _Judged:
    argv: list[str]
    env: dict[str, str]
    boundary: Boundary
    where: str
    places: tuple[str, ...]
    only_reads: bool


@dataclass(frozen=True, slots=True)
class _CachedPrograms:
    """The cached programs of one scope, and what they were resolved with."""

    at: float
    scopes: Sequence[Scope]
    scope: Scope
    programs: Programs


class Preparation:
    """Judges and plans commands."""

    def __init__(
        self,
        computer: Computer,
        sandbox: Sandbox,
        environ: Mapping[str, str] | None = None,
        accepts_anyone_local: Callable[[], bool] = bool,
        scopes: Callable[[], Sequence[Scope]] = tuple,
        gates: "Callable[[], Gates] | None" = None,
        mask: Callable[[], Mask | None] = lambda: None,
        elevations: "Callable[[CommandRequest, dict[str, str]], InnerSocket] | None" = None,
    ) -> None:
        self._computer = computer
        self._gates = gates
        self._mask = mask
        self._elevations = elevations
        self._accepts_anyone_local = accepts_anyone_local
        self._sandbox = sandbox
        # A copy, so that later changes of the service's environment do not affect commands.
        self._environ = dict(os.environ if environ is None else environ)
        self._kept = environment.inherited(self._environ)
        self._scopes = scopes
        self._programs: dict[str, _CachedPrograms] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(
            services.use(Computer),
            services.use(Sandbox),
            accepts_anyone_local=lambda: services.accepts_anyone_local,
            scopes=lambda: services.config.scopes,
            gates=lambda: gates_of(services),
            mask=lambda: services.use(Vault).mask,
            elevations=partial(elevation_of, services),
        )

    @property
    def environ(self) -> Mapping[str, str]:
        """The service's own environment, as it was when it started."""
        return self._environ

    def locate(self, name: str) -> str | None:
        """A program that no scope can replace, for the service itself to run; None when there is none."""
        return find_program(name, self._environ.get("PATH", "").split(os.pathsep), writers_of(self._scopes()))

    async def boundary(self, scope: Scope) -> Boundary:
        """The boundary of a command of this scope."""
        return NO_BOUNDARY if scope.policy.sandbox == "off" else await self._sandbox.probe()

    async def judge(self, request: CommandRequest) -> None:
        """Raise what `prepare` would raise for the scope's rules, without side effects."""
        held: list[int] = []
        try:
            await self._judged(request, held)
        finally:
            _close(held)

    async def why_refused(self, request: CommandRequest) -> str | None:
        """The reason the command would be refused; None when it would run."""
        try:
            await self.judge(request)
        except LinkError as error:
            return error.message
        return None

    async def prepare(self, request: CommandRequest) -> Prepared:
        """The plan for one command. Raises, with nothing started, when the scope does not allow it."""
        held: list[int] = []
        scanned = Scanned()
        views = HeldView(request)
        sockets: list[InnerSocket] = []
        try:
            judged = await self._judged(request, held)
            views.refuse_without(judged.boundary)
            gate = self._gate(request, judged)
            confinement = Confinement(
                cwd=judged.where,
                cwd_fd=held[0] if held else None,
                network=request.has_network,
            )
            for each in self._sockets(request, judged, gate):
                sockets.append(each)
                held.append(each.folder.fd)
            if judged.boundary.holds:
                confinement = self._confined(confinement, request, held, judged.places)
                confinement = kept_apart(confinement, request.scope, self._scopes())
                confinement = await views.applied(confinement, held)
                confinement = confinement if gate is None else gate.shown_in(confinement)
                for each in sockets:
                    confinement = each.shown_in(confinement)
            else:
                # Nothing confines it, but names it plants in the scope's folders are removed.
                confinement = replace(confinement, writable=tuple(self._folder(root, held) for root in request.roots))
            scanned = await self._sandbox.scan(confinement, judged.boundary)
            plan, env = self._sandbox.wrap(
                judged.argv, confinement, judged.env, boundary=judged.boundary, scanned=scanned, pty=request.pty
            )
        except BaseException:
            if scanned.planting is not None:
                scanned.planting.end(lambda: None)
            scanned.release()
            _close(held)
            views.release()
            for each in sockets:
                each.close()
            raise
        plan.releases.append(views.release)
        plan.guard, plan.mask = views.guard, self._mask()
        plan.releases.extend(each.close for each in sockets)
        if gate is not None:
            plan.network_gate = gate
            plan.releases.append(gate.close)
        plan.closes.extend(held)
        plan.client, plan.limits = account_of(request.principal.id), limits_of(request.scope.policy)
        plan.rights = ProcessRights.of(request.scope, request.principal, request.any_of)
        refuse_partial(plan, request.scope)
        plan.boundary += views.named
        warnings = [
            *plan.warnings,
            *boundary_warnings(request.scope, judged.boundary, request.access, lists_hosts=request.lists_hosts),
        ]
        may_change = not judged.only_reads and request.access == "writable"
        return Prepared(judged.argv, plan, env, plan.boundary, warnings, may_change)

    async def _judged(self, request: CommandRequest, held: list[int]) -> "_Judged":
        """Apply the scope's rules to the command, with its working folder held first."""
        policy = request.scope.policy
        argv, line = argv_of(request)
        boundary = await self.boundary(request.scope)
        if request.program_access is None:
            judge_access(request.access, boundary_holds=boundary.holds)
        where = self._where(request, held)
        programs = self._programs_for(request, boundary)
        if line is not None:
            argv = [shell_of(programs), "-c", line]
        program = programs.resolve(argv[0], where)
        if request.access == "hidden" and programs.is_in_scope(program):
            raise NotFound(f"There is no program {argv[0][:80]!r} here.", program=argv[0][:80])
        judge_program(program, request.principal)
        only_reads = line is None and is_ordinary(tuple(argv), program, programs.locate)
        judge_hosts(policy, boundary, lists_hosts=request.lists_hosts)
        judge_boundary(
            request.scope,
            boundary_holds=boundary.holds,
            shell=line is not None,
            program=program,
            only_reads=only_reads,
        )
        started = [program]
        if line is None:
            judge_command(policy, argv, program, programs.locate, scope=request.scope.id, boundary_holds=boundary.holds)
        else:
            started += judge_request(request, argv, program, programs, where)
        self._refuse_calls_to_service(request, boundary)
        env = environment.build(
            self._kept,
            self._environ,
            request.env,
            passed=policy.environment,
            search_path=(
                *programs.search_path,
                *(path.rpartition("/")[0] for path in programs.extras.values() if boundary.holds),
            ),
            boundary_holds=boundary.holds,
        )
        if request.program_access is not None:
            env |= request.program_access.env
        through = () if request.program_access is None else request.program_access.through
        wrappers = [programs.resolve(name, where) for name in through[:1]]
        for each in wrappers:
            judge_program(each, request.principal)
        places: tuple[str, ...] = ()
        if boundary.holds:
            needed = (place for each in (*started, *wrappers) for place in programs.places(each))
            places = tuple(dict.fromkeys((*needed, *programs.extras.values())))
        # From here on the program is exactly this file, whatever the name resolves to later.
        return _Judged([*through, program.path, *argv[1:]], env, boundary, where, places, only_reads)

    def _refuse_calls_to_service(self, request: CommandRequest, boundary: Boundary) -> None:
        """Refuse a command that could call a service that answers without a token. A gate refuses that itself."""
        is_command = request.program_access is None
        if boundary.holds and is_command and request.has_network and self._accepts_anyone_local():
            raise PermissionDenied(
                "This scope gives commands the network, and the service answers everyone on this machine without a token: "
                "a command could call it and use every scope. Make a token first: computer-linker token rotate",
                rule="network",
            )

    def _gate(self, request: CommandRequest, judged: _Judged) -> "CommandGate | None":
        """The gate of a command whose scope lists its hosts; None where it has none."""
        if not request.lists_hosts or judged.boundary.kind != "bubblewrap":
            return None
        from computer_linker.providers.network.gates import ENVIRONMENT

        assert self._gates is not None, "a service has gates"
        judged.env.update(ENVIRONMENT)
        program = judged.argv[0].rpartition("/")[2]
        gate = self._gates().for_command(request.scope, request.principal, program)
        if gate.secrets is not None:
            judged.env.update(gate.secrets.environment())
        return gate

    def _sockets(self, request: CommandRequest, judged: _Judged, gate: "CommandGate | None") -> "Iterator[InnerSocket]":
        """What of the service the command reaches: where `sudo` asks the owner, and the agent of its SSH keys."""
        may_ask = request.scope.policy.elevation and request.program_access is None
        if self._elevations is not None and may_ask and judged.boundary.kind == "bubblewrap":
            yield self._elevations(request, judged.env)
        if gate is not None and (agent := gate.agent_socket()) is not None:
            yield agent

    def _programs_for(self, request: CommandRequest, boundary: Boundary) -> Programs:
        """The program lookup of this scope; rebuilt every few seconds, and when the config changed."""
        now, scopes, scope = time.monotonic(), self._scopes(), request.scope
        kept = self._programs.get(scope.id)
        if kept is None or now - kept.at > _CACHED_S or kept.scopes is not scopes or kept.scope is not scope:
            others = writers_of(scopes, but=scope.id, protects=boundary.protected)
            roots = tuple(root.root for root in request.roots)
            extras = tuple(path for path in (ripgrep(),) if path is not None)
            kept = self._programs[scope.id] = _CachedPrograms(
                now, scopes, scope, Programs(roots, self._environ, others, extras, self._private(scopes))
            )
        return kept.programs

    def _private(self, scopes: Sequence[Scope]) -> tuple[str, ...]:
        roots = (root for scope in scopes for root in scope.roots)
        return (os.path.realpath(self._sandbox.state), *roots)

    def _where(self, request: CommandRequest, held: list[int]) -> str:
        """The held working folder; for a caller that may not read it, an empty one of the sandbox."""
        if request.access == "hidden":
            # Not even opened: this caller must not learn whether the folder exists.
            return _EMPTY_FOLDER
        return real_path(self._open(request.cwd, held), request.cwd.root)

    def _open(self, path: RootedPath, held: list[int]) -> int:
        fd = self._computer.files.open_folder(path)
        held.append(fd)
        return fd

    def _confined(
        self, place: Confinement, request: CommandRequest, held: list[int], programs: tuple[str, ...]
    ) -> Confinement:
        access = request.access
        if access == "hidden":
            program = request.program_access
            own = () if program is None else own_folders(program, held)
            emptied = () if program is None else program.hides
            return replace(place, programs=programs, own=own, emptied=emptied)
        if request.program_access is not None:
            cwd = request.cwd
            others = tuple(self._folder(root, held) for root in request.roots if cwd.parts or root.root != cwd.root)
            place = replace(place, programs=programs)
            return confinement_for(request.program_access, place, cwd, others, self._computer.files, held)
        folders = tuple(self._folder(root, held) for root in request.roots)
        may_write = access == "writable"
        return replace(
            place, writable=folders if may_write else (), readable=() if may_write else folders, programs=programs
        )

    def _folder(self, root: RootedPath, held: list[int]) -> Folder:
        fd = self._open(root, held)
        return Folder(fd, real_path(fd, root.root), root.rules)


def _close(held: list[int]) -> None:
    while held:
        os.close(held.pop())
