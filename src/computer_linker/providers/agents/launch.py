"""Prepares the command of an agent program: the scope's rules, its own folder, its version."""

import re
import tempfile
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from computer_linker.errors import NotFound, PermissionDenied, ProviderUnavailable
from computer_linker.model.capability import Capability
from computer_linker.providers.agents.order import Order
from computer_linker.providers.agents.program import AgentProgram, Ask, Line
from computer_linker.providers.processes.confinement import OwnPlace, ProgramAccess
from computer_linker.providers.processes.prepare import CommandRequest, Preparation, Prepared
from computer_linker.providers.processes.runner import Limits, Runner
from computer_linker.providers.sandbox.boundary import SpawnPlan
from computer_linker.system import os

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_DEADLINE_S = 20.0


class AgentLauncher:
    """Plans agent processes. A program's version is read once per file and modification time."""

    def __init__(self, preparation: Preparation, runner: Runner, homes: Path) -> None:
        self._preparation, self._runner, self._homes = preparation, runner, homes
        self._versions: dict[tuple[str, int], str] = {}

    async def prepare(self, order: Order, program: AgentProgram) -> tuple[Line, Prepared]:
        """Apply the scope's rules to the agent's command and plan it. Nothing is started."""
        scope = order.scope
        boundary = await self._preparation.boundary(scope)
        ask = Ask(
            mode=order.mode,
            # A list of hosts has no gate for what an agent starts, so that is without a network.
            network=scope.policy.network is True,
            is_confined=boundary.holds,
            has_own_root=boundary.kind == "bubblewrap",
            where=order.cwd_path,
            model=order.model,
            thread_id=None if order.session is None else order.session.thread_id,
        )
        line = program.line(ask, self._preparation.environ, self._homes / scope.id / _folder_of(order))
        program_access = ProgramAccess(
            writes=order.mode == "workspace-write",
            network=True,
            own=line.shown or (OwnPlace(line.home, line.home),),
            hides=(line.home,) if line.shown else (),
            env=line.env,
            nests=bool(line.holds),
        )
        request = CommandRequest(
            scope, order.principal, order.roots, order.cwd, line.argv, program_access=program_access,
            view=order.view, any_of=frozenset({Capability.CODEX_RUN}),
        )  # fmt: skip
        await self._judged(request, program)
        if line.holds and boundary.kind == "landlock":
            # Its own sandbox cannot be created there, and without it its commands could reach its login and the network.
            raise ProviderUnavailable(
                f"{program.name} cannot make its own sandbox inside Landlock, the only boundary here.",
                reason="sandbox",
                remedy="Install bubblewrap: apt-get install bubblewrap",
            )
        program.check(self._preparation.environ)
        _make_own_folder(line)
        prepared = await self._preparation.prepare(request)
        if line.holds:
            prepared.boundary = line.holds if prepared.boundary == "none" else f"{prepared.boundary}; {line.holds}"
        return line, prepared

    async def _judged(self, request: CommandRequest, program: AgentProgram) -> None:
        """Apply the scope's rules before anything else."""
        try:
            await self._preparation.judge(request)
        except NotFound as error:
            if "program" not in error.details:
                raise
            raise ProviderUnavailable(
                f"The program {program.name} is not installed.",
                reason="missing",
                program=program.name,
                remedy=program.install,
            ) from error

    async def check(self, order: Order, program: AgentProgram, prepared: Prepared) -> None:
        """Raise for a program that the scope could change, or that is too old. One that prints no version is tried."""
        path = prepared.argv[0]
        _refuse_changeable(path, order)
        version = await self._version(path, prepared.env["PATH"])
        if version and tuple(int(part) for part in version.split(".")) < program.oldest:
            wanted = ".".join(map(str, program.oldest))
            raise ProviderUnavailable(
                f"{program.name} {version} cannot be used; {wanted} or newer is needed.",
                reason="version",
                found=version,
                needed=wanted,
                remedy=program.install,
            )

    async def _version(self, path: str, search_path: str) -> str:
        key = (path, Path(path).stat().st_mtime_ns)  # noqa: ASYNC240  # one stat of a local program
        if key not in self._versions:
            # An agent makes its folders in whatever home it has, also to print its version.
            with TemporaryDirectory() as home:
                env = {"PATH": search_path, "HOME": home}
                outcome = await self._runner.run(SpawnPlan(argv=(path, "--version")), env, Limits(_DEADLINE_S, 4000))
            found = _VERSION.search(outcome.stdout)
            self._versions[key] = found.group() if found is not None and outcome.exit_code == 0 else ""
        return self._versions[key]


def _refuse_changeable(path: str, order: Order) -> None:
    """Refuse an agent program that lies in the scope, where clients could replace it."""
    real = Path(path).resolve()
    if any(real.is_relative_to(Path(root.root).resolve()) for root in order.roots):
        raise PermissionDenied(
            "The agent's program lies inside the scope, where its bytes can be changed.", rule="programInScope"
        )


def _folder_of(order: Order) -> str:
    """The name of the folder for the conversations of one principal: that of the session which is continued."""
    principal = order.principal.id if order.session is None else order.session.principal
    return blake2b(principal.encode(), digest_size=12).hexdigest()


def _make_own_folder(line: Line) -> None:
    """Create the agent's own folder and rewrite its scripts, whatever an earlier turn left there."""
    folder = line.shown[0].source if line.shown else line.home
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in line.scripts.items():
        # Written by descriptor and replaced atomically: the agent's commands may write here, or be executing it now.
        fd, fresh = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
        with os.fdopen(fd, "w") as file:
            os.fchmod(fd, 0o700)
            file.write(text)
        Path(fresh).replace(Path(folder, name))
