"""Language servers of the service: started on first use inside the sandbox, shared by all clients, ended when idle."""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.processes import ProcessLimits
from computer_linker.errors import LimitExceeded, LinkError, ProcessNotFound, ProviderUnavailable
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.policy.writers import is_below
from computer_linker.providers.held import guarded
from computer_linker.providers.language.server import Server
from computer_linker.providers.language.servers import SYSTEM_PATH, Kind, kind_of
from computer_linker.providers.processes.confinement import real_path
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.processes.runner import Runner
from computer_linker.providers.sandbox.boundary import Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.places import SYSTEM, home, tool_folders
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.services import Services
from computer_linker.system import os

log = logging.getLogger(__name__)
MAX_SERVERS = 6
IDLE_S = 600.0
MEMORY_BYTES = 3 << 30
_MAX_CRASHES = 3
_CRASHES_WITHIN_S = 600.0
Key = tuple[str, str, PathRules]


@dataclass(slots=True)
class _Place:
    """Where one server belongs: the server, and when earlier ones crashed."""

    server: Server | None = None
    crashes: list[float] = field(default_factory=list)
    last_errors: str = ""
    starting: anyio.Lock = field(default_factory=anyio.Lock)


class LanguageServers:
    """Starts language servers and looks them up."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._preparation: Preparation = services.use(Preparation)
        self._sandbox: Sandbox = services.use(Sandbox)
        self._runner: Runner = services.use(Runner)
        self._computer: Computer = services.use(Computer)
        self._places: dict[Key, _Place] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self.idle_s = IDLE_S
        self.memory_bytes = MEMORY_BYTES

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    def running(self) -> list[Server]:
        """The servers that run now."""
        return [place.server for place in self._places.values() if place.server is not None and place.server.is_running]

    def why_none(self, path: RootedPath) -> str | None:
        """The reason there is no server for a file; None when its program is installed."""
        kind = kind_of(path.name)
        if kind is None:
            return "No language server is known for this kind of file."
        return None if self.command(kind) else f"{kind.name} is not installed. Install it: {kind.install}"

    def command(self, kind: Kind) -> list[str] | None:
        """The command of an installed server, its program a file that no scope could have replaced."""
        for program, *arguments in kind.programs:
            found = self._preparation.locate(program)
            if found is not None:
                return [found, *arguments]
        return None

    def found(self, path: RootedPath) -> Server | None:
        """The server for a file, if it runs already; the path is guarded."""
        kind = kind_of(path.name)
        place = None if kind is None else self._places.get((kind.name, path.root, path.rules))
        return place.server if place is not None and place.server is not None and place.server.is_running else None

    async def server(self, path: RootedPath) -> Server:
        """The running server for a file's language and root, started when there is none.

        Raises:
            ProviderUnavailable: none is installed, none can be confined here, or it keeps crashing.
        """
        kind = kind_of(path.name)
        reason = self.why_none(path)
        if kind is None or reason is not None:
            install = None if kind is None else kind.install
            raise ProviderUnavailable(reason or "", reason="missing", remedy=install, path=path.shown)
        path = guarded(path, self._services.home)
        key = (kind.name, path.root, path.rules)
        place = self._places.setdefault(key, _Place())
        async with place.starting:
            server = place.server
            if server is not None and server.is_running:
                server.used_at = time.monotonic()
                return server
            self._note_crash(place)
            await self._make_room()
            place.server = await self._started(kind, path, place)
            self.watch_idle()
            return place.server

    async def end_of(self, principal: str | None) -> int:
        """End all servers when everything is halted; they belong to no single principal."""
        running = self.running() if principal is None else []
        for server in running:
            await server.aclose()
        return len(running)

    async def aclose(self) -> None:
        """End all servers."""
        if self._timer is not None:
            self._timer.cancel()
        async with anyio.create_task_group() as group:
            for server in self.running():
                group.start_soon(server.aclose)
        if self._ending:
            await asyncio.wait(self._ending, timeout=10)

    def _note_crash(self, place: _Place) -> None:
        """Count the end of a server that was not ended by us. Raises when it crashed too often lately."""
        server, place.server = place.server, None
        now = time.monotonic()
        if server is not None and server.ended is not None:
            place.crashes.append(now)
            place.last_errors = server.last_errors()
            reached = "".join(f" It reached its limit of {name}." for name, _ in server.ended.reached)
            log.warning("language server %s ended with %s.%s", server.kind.name, server.ended.exit_code, reached)
            place.last_errors = f"{reached} {place.last_errors}".strip()
        place.crashes = [at for at in place.crashes if now - at < _CRASHES_WITHIN_S]
        if len(place.crashes) >= _MAX_CRASHES:
            raise ProviderUnavailable(
                f"The language server crashed {len(place.crashes)} times, so it is not started for a while. "
                f"{place.last_errors[:300]}".strip(),
                reason="crashed",
                retryAfterSeconds=round(_CRASHES_WITHIN_S - (now - place.crashes[0])),
            )

    async def _make_room(self) -> None:
        """End the server that was used longest ago where too many run."""
        running = self.running()
        while len(running) >= MAX_SERVERS:
            idle = sorted((one for one in running if not one.active), key=lambda one: one.used_at)
            if not idle:
                raise LimitExceeded(f"{MAX_SERVERS} language servers are busy; try again.", running=len(running))
            await self._end(idle[0])
            running = self.running()

    async def _end(self, server: Server) -> None:
        for place in self._places.values():
            if place.server is server:
                place.server = None
        await server.aclose()

    def watch_idle(self) -> None:
        """Look again for idle servers after a part of the idle time; call it when that was changed."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(0.05, self.idle_s / 8), self._end_idle)

    def _end_idle(self) -> None:
        self._timer = None
        now = time.monotonic()
        known = {os.path.realpath(root) for scope in self._services.config.scopes for root in scope.roots}
        for server in self.running():
            # One whose root no scope has any more ends too.
            if not server.active and (now - server.used_at > self.idle_s or server.root not in known):
                task = asyncio.create_task(self._end(server))
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
        if self.running():
            self.watch_idle()

    async def _started(self, kind: Kind, path: RootedPath, place: _Place) -> Server:
        command = self.command(kind)
        assert command is not None, "checked before"
        fd = self._computer.files.open_folder(RootedPath(path.root, (), path.rules))
        try:
            root = real_path(fd, path.root)
            plan, env = await self._planned(kind, command, Folder(fd, root, path.rules))
        except BaseException:
            os.close(fd)
            raise
        plan.closes.append(fd)
        try:
            child = await self._runner.spawn(plan, env, stdin=True)
        except BaseException:
            plan.release()
            raise
        options = {**kind.options, **_own_tsserver(kind, command[0])}
        server = Server(kind, root, path.rules, child, options, plan.release)
        server.program = command[0]
        try:
            await server.start()
        except (LinkError, ProcessNotFound) as error:
            server.kill()
            with suppress(TimeoutError):
                with anyio.fail_after(2):
                    await child.wait()
            place.server = server
            raise ProviderUnavailable(
                f"{kind.name} could not be started. {server.last_errors()[:300]} (To install it: {kind.install})",
                reason="start",
                remedy=kind.install,
            ) from error
        except BaseException:
            server.kill()
            raise
        return server

    async def _planned(self, kind: Kind, command: Sequence[str], root: Folder) -> tuple[SpawnPlan, dict[str, str]]:
        boundary = await self._sandbox.probe()
        if boundary.kind not in ("bubblewrap", "seatbelt") or not boundary.holds:
            raise ProviderUnavailable(
                "Language servers run only where the kernel closes secrets, the rest of the disk and the network to them, and "
                f"here it does not: {boundary.detail or boundary.kind}.",
                reason="sandbox",
                remedy="Install bubblewrap: apt-get install bubblewrap",
            )
        needed = {program: inside for name, inside in kind.needs.items() if (program := self._preparation.locate(name))}
        places = [
            *_places(command[0], kind),
            *(each for one, inside in needed.items() for each in _places(one, kind, inside)),
        ]
        confinement = Confinement(
            readable=(root,),
            programs=tuple(dict.fromkeys(places)),
            is_bare=not kind.needs_tools,
            network=False,
            cut_unix_sockets=True,
            cwd=root.path,
            cwd_fd=root.fd,
        )
        folders = [os.path.dirname(one) for one in (command[0], *needed)]
        env = {
            "PATH": ":".join(dict.fromkeys((*folders, *SYSTEM_PATH.split(":")))),
            "HOME": home(),
            "LC_ALL": "C.UTF-8",
            "NODE_OPTIONS": f"--max-old-space-size={self.memory_bytes * 3 // 4 >> 20}",
            **kind.env,
        }
        scanned = await self._sandbox.scan(confinement, boundary)
        try:
            plan, env = self._sandbox.wrap(command, confinement, env, boundary=boundary, scanned=scanned)
        except BaseException:
            scanned.release()
            raise
        plan.limits = ProcessLimits(memory_bytes=self.memory_bytes)
        return plan, env


def _places(program: str, kind: Kind, inside: str = "") -> list[str]:
    """What a program needs to be seen of this machine: its file and what it leads to; its packages or toolchain."""
    found: list[str] = []
    for path in (program, os.path.realpath(program)):
        head, packaged, _ = path.partition("/node_modules/")
        above = Path(path).parents[1]
        is_toolchain = bool(inside) and (above / inside).exists()
        place = head + "/node_modules" if packaged else str(above) if is_toolchain else path
        tools = tool_folders() if kind.needs_tools else ()
        if not is_below(place, SYSTEM) and not is_below(place, tools):
            found.append(place)
    return found


def _own_tsserver(kind: Kind, program: str) -> dict[str, Any]:
    """The tsserver installed beside the server: without this, the project's own would be executed."""
    if kind.name != "typescript-language-server":
        return {}
    for above in Path(os.path.realpath(program)).parents:
        found = above / "typescript" / "lib" / "tsserver.js"
        if above.name == "node_modules" and found.is_file():
            return {"tsserver": {**kind.options["tsserver"], "path": str(found)}}
    raise ProviderUnavailable(
        "typescript-language-server has no typescript with a tsserver beside it. Install it: npm install -g typescript@5",
        reason="missing",
        remedy="npm install -g typescript@5",
    )
