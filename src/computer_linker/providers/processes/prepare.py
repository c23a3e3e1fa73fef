"""From a request to a plan: one argv, judged, resolved and confined, before anything is started."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from computer_linker.computer.base import Computer
from computer_linker.errors import InvalidRequest, LinkError, NotFound, ProviderUnavailable
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.command_line import MAX_TEXT, ShellNeeded, to_argv
from computer_linker.policy.commands import judge_access, judge_boundary, judge_command, judge_program
from computer_linker.policy.engine import FolderAccess, folder_access
from computer_linker.providers.processes import environment
from computer_linker.providers.processes.keeping import Keeping, kept_to, own_folders
from computer_linker.providers.processes.limits import limits_of
from computer_linker.providers.processes.open_door import OpenDoor
from computer_linker.providers.processes.programs import Programs, trusted_program
from computer_linker.providers.processes.writers import writers_of
from computer_linker.providers.sandbox.boundary import NO_BOUNDARY, Boundary, Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.sandbox import Looked, Sandbox

_LOOK_AGAIN_S = 5.0
_EMPTY_FOLDER = "/tmp"  # noqa: S108  # the sandbox's own: private, and empty when the command starts


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """What was asked for. `roots` are all the scope's roots, `cwd` lies in one of them."""

    scope: Scope
    principal: Principal
    """Who asks: the command sees the scope's folders with this caller's rights, not with the scope's."""
    roots: tuple[RootedPath, ...]
    cwd: RootedPath
    command: str | list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    pty: bool = False
    keeping: Keeping | None = None

    @property
    def access(self) -> FolderAccess:
        """What the command may do with the scope's folders."""
        return folder_access(self.principal, self.scope)


@dataclass(slots=True)
class Prepared:
    """A command ready to spawn; `plan.release()` lets go of everything it holds."""

    argv: list[str]
    plan: SpawnPlan
    env: dict[str, str]
    boundary: str
    warnings: list[str]

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


@dataclass(frozen=True, slots=True)
class _Kept:
    """The programs of one scope, and what they were found with."""

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
        door: OpenDoor | None = None,
        scopes: Callable[[], Sequence[Scope]] = tuple,
    ) -> None:
        self._computer = computer
        self._door = door
        self._sandbox = sandbox
        # A copy: what the service's own environment becomes later is no business of commands.
        self._environ = dict(os.environ if environ is None else environ)
        self._kept = environment.kept(self._environ)
        self._scopes = scopes
        self._programs: dict[str, _Kept] = {}

    @classmethod
    def open(cls, services: Any) -> Self:
        return cls(
            services.use(Computer),
            services.use(Sandbox),
            door=services.use(OpenDoor),
            scopes=lambda: services.config.scopes,
        )

    @property
    def environ(self) -> Mapping[str, str]:
        """The service's own environment, as it was when it started."""
        return self._environ

    def locate(self, name: str) -> str | None:
        """A program that no scope could have replaced, to be run by the service itself; None when there is none."""
        return trusted_program(name, self._scopes(), self._environ)

    async def boundary(self, scope: Scope) -> Boundary:
        """What will hold around a command of this scope."""
        return NO_BOUNDARY if scope.policy.sandbox == "off" else await self._sandbox.probe()

    async def judge(self, request: CommandRequest) -> None:
        """Raise what `prepare` would raise of the scope's rules. Nothing is started or put in place."""
        held: list[int] = []
        try:
            await self._judged(request, held)
        finally:
            _close(held)

    async def why_refused(self, request: CommandRequest) -> str | None:
        """Why the command would be refused; None when it would run."""
        try:
            await self.judge(request)
        except LinkError as error:
            return error.message
        return None

    async def prepare(self, request: CommandRequest) -> Prepared:
        """The plan for one command. Raises, with nothing started, when the scope does not allow it."""
        held: list[int] = []
        looked = Looked()
        try:
            judged = await self._judged(request, held)
            network = request.scope.policy.network if request.keeping is None else request.keeping.network
            confinement = Confinement(cwd=judged.where, cwd_fd=held[0] if held else None, network=network)
            if judged.boundary.holds:
                confinement = self._confined(confinement, request, held, judged.places)
            else:
                # Nothing confines it, but what it plants in the scope's folders is taken away.
                confinement = replace(confinement, writable=tuple(self._folder(root, held) for root in request.roots))
            looked = await self._sandbox.look(confinement, judged.boundary)
            plan, env = self._sandbox.wrap(
                judged.argv, confinement, judged.env, boundary=judged.boundary, looked=looked, pty=request.pty
            )
        except BaseException:
            if looked.planting is not None:
                looked.planting.end(lambda: None)
            _close(held)
            raise
        plan.closes.extend(held)
        plan.client, plan.limits = request.principal.id, limits_of(request.scope.policy)
        if plan.is_partial and request.scope.policy.sandbox == "required":
            plan.release()
            raise ProviderUnavailable(
                "This scope runs commands only behind a whole boundary, and its folder holds too many folders to close every "
                "secret in them. Narrow the scope to a smaller folder, or set its `sandbox` to `auto`.",
                remedy="Narrow the scope to a smaller folder.",
            )
        warnings = [*plan.warnings, *_warnings(request, judged.boundary)]
        return Prepared(judged.argv, plan, env, plan.boundary, warnings)

    async def _judged(self, request: CommandRequest, held: list[int]) -> "_Judged":
        """The command as the scope's rules let it through; the folder it starts in is held first of all."""
        policy = request.scope.policy
        argv, is_shell = _argv(request)
        boundary = await self.boundary(request.scope)
        if request.keeping is None:
            judge_access(request.access, boundary_holds=boundary.holds)
        where = self._where(request, held)
        programs = self._programs_for(request, boundary)
        program = programs.resolve(argv[0], where)
        if request.access == "hidden" and programs.is_in_scope(program):
            raise NotFound(f"There is no program {argv[0][:80]!r} here.", program=argv[0][:80])
        judge_program(program, request.principal)
        judge_command(policy, argv, program, programs.locate)
        judge_boundary(request.scope, boundary_holds=boundary.holds, shell=is_shell, program=program)
        if self._door is not None and boundary.holds and policy.network and request.keeping is None:
            self._door.refuse_network()
        env = environment.build(
            self._kept,
            self._environ,
            request.env,
            passed=policy.environment,
            search_path=programs.search_path,
            boundary_holds=boundary.holds,
        )
        if request.keeping is not None:
            env |= request.keeping.env
        through = () if request.keeping is None else request.keeping.through
        started = [program, *(programs.resolve(name, where) for name in through[:1])]
        for each in started[1:]:
            judge_program(each, request.principal)
        places = tuple(place for each in started for place in programs.places(each)) if boundary.holds else ()
        # From here on the program is this file and no other, whatever the name may come to mean.
        return _Judged([*through, program.path, *argv[1:]], env, boundary, where, places)

    def _programs_for(self, request: CommandRequest, boundary: Boundary) -> Programs:
        """Where this scope's programs are found; looked at anew every few seconds, and when the config changed."""
        now, scopes, scope = time.monotonic(), self._scopes(), request.scope
        kept = self._programs.get(scope.id)
        if kept is None or now - kept.at > _LOOK_AGAIN_S or kept.scopes is not scopes or kept.scope is not scope:
            others = writers_of(scopes, but=scope.id, boundary=boundary)
            roots = tuple(root.root for root in request.roots)
            kept = self._programs[scope.id] = _Kept(now, scopes, scope, Programs(roots, self._environ, others))
        return kept.programs

    def _where(self, request: CommandRequest, held: list[int]) -> str:
        """The folder the command starts in, held; for a caller that may not read it an empty one of the sandbox's own."""
        if request.access == "hidden":
            # Not even opened: whether the folder exists is not for this caller to know.
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
            own = () if request.keeping is None else own_folders(request.keeping, held)
            return replace(place, programs=programs, own=own)
        if request.keeping is not None:
            cwd = request.cwd
            others = tuple(self._folder(root, held) for root in request.roots if cwd.parts or root.root != cwd.root)
            place = replace(place, programs=programs)
            return kept_to(request.keeping, place, cwd, others, self._computer.files, held)
        folders = tuple(self._folder(root, held) for root in request.roots)
        may_write = access == "writable"
        return replace(
            place, writable=folders if may_write else (), readable=() if may_write else folders, programs=programs
        )

    def _folder(self, root: RootedPath, held: list[int]) -> Folder:
        fd = self._open(root, held)
        real = real_path(fd, root.root)
        return Folder(
            fd, real, root.rules, alias=root.root.rstrip("/") if root.root.rstrip("/") not in (real, "") else ""
        )


def real_path(fd: int, otherwise: str) -> str:
    """Where a held folder lies; systems without /proc answer by its configured path."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115  # every command waits for this
    except OSError:
        return os.path.realpath(otherwise)


def _argv(request: CommandRequest) -> tuple[list[str], bool]:
    try:
        return to_argv(request.command), False
    except ShellNeeded:
        text = request.command
        if not request.scope.policy.allow_shell or not isinstance(text, str):
            raise
        if len(text) > MAX_TEXT or "\0" in text:
            raise InvalidRequest(f"A shell command has at most {MAX_TEXT} characters and no NUL.") from None
        return ["sh", "-c", text], True


def _warnings(request: CommandRequest, boundary: Boundary) -> list[str]:
    warnings: list[str] = []
    scope = request.scope
    if not boundary.holds:
        why = "the scope's policy turns the sandbox off" if scope.policy.sandbox == "off" else boundary.detail
        warnings.append(f"No kernel boundary held around this command: {why}. It could reach all your files.")
        if not scope.policy.network:
            warnings.append("network: false is not enforced without a kernel boundary.")
    elif request.access == "read-only":
        warnings.append("The scope or this caller lacks fs:write, so the command saw the scope's folders read-only.")
    elif request.access == "hidden":
        warnings.append("The scope or this caller lacks fs:read, so the command saw none of the scope's folders.")
    return warnings


def _close(held: list[int]) -> None:
    while held:
        os.close(held.pop())
