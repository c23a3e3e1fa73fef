"""Browsers: one for each scope and caller, started on first use and ended with the service, when idle, or by its caller."""

import asyncio
import logging
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio

from computer_linker.errors import LimitExceeded, NotFound, ProcessNotFound, ProviderUnavailable
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal, is_of, leaves_room
from computer_linker.model.scope import Scope
from computer_linker.policy.writers import find_program
from computer_linker.providers.browser.session import INSTALL, Command, Session
from computer_linker.providers.processes.confinement import OwnPlace, ProgramAccess
from computer_linker.providers.processes.prepare import CommandRequest, Preparation, Prepared
from computer_linker.providers.processes.runner import Runner
from computer_linker.services import Services
from computer_linker.system import os

if TYPE_CHECKING:
    from computer_linker.providers.network.gate import Gate

log = logging.getLogger(__name__)
PROGRAM = "agent-browser"
CHROMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAX_OPEN = 8
IDLE_S = 900.0
_PORT = 3128
_ARGS = ("--disk-cache-size=67108864", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp")
Key = tuple[str, str]


class Browsers:
    """Starts browsers and looks them up."""

    def __init__(self, services: Services) -> None:
        self._preparation: Preparation = services.use(Preparation)
        self._runner: Runner = services.use(Runner)
        self._services = services
        self._home = Path(os.path.realpath(services.home)) / "browsers"
        self._open: dict[Key, Session] = {}
        self._timers: dict[Key, list[asyncio.TimerHandle]] = {}
        self._starting = anyio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        # Left by a killed service: nothing runs in it, because the sandbox ended with the service.
        shutil.rmtree(self._home, ignore_errors=True)

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    def is_busy(self) -> bool:
        """True while a browser is open."""
        return any(session.is_running for session in self._open.values())

    def find(self, scope: Scope, principal: Principal) -> Session:
        """This caller's browser in this scope. Raises ProcessNotFound when there is none."""
        session = self._open.get((scope.id, principal.id))
        if session is not None and not session.is_for(scope):
            session.kill()
            raise ProcessNotFound("The scope has changed, so its browser was ended. Open the page again.")
        if session is None or not session.is_running:
            raise ProcessNotFound("No page is open in this scope. Open one with browser.open.")
        self._used((scope.id, principal.id))
        return session

    async def judge(self, request: CommandRequest, *commands: Command) -> None:
        """Apply the scope's rules to each command, without side effects."""
        from dataclasses import replace

        for command in commands:
            await self._judged(replace(request, command=[PROGRAM, *command]))

    async def start(
        self, request: CommandRequest, principal: Principal, gate: Callable[[], Awaitable[None]]
    ) -> Session:
        """This caller's browser, started when there is none. `gate` is awaited before it does anything."""
        key = (request.scope.id, principal.id)
        async with self._starting:
            session = self._open.get(key)
            if session is not None and session.is_running and session.is_for(request.scope):
                await gate()
                self._used(key)
                return session
            if session is not None:
                await self.end(key)
            running = [whose for (_, whose), one in self._open.items() if one.is_running]
            if len(running) >= MAX_OPEN or not leaves_room(principal.id, running, MAX_OPEN):
                raise LimitExceeded(f"{len(running)} browsers are open already; close one first.", open=len(running))
            session = await self._started(request, gate)
            self._open[key] = session
            self._timers[key] = [
                asyncio.get_running_loop().call_later(request.scope.policy.max_runtime_seconds, session.kill)
            ]
            self._used(key)
            return session

    async def end(self, key: Key) -> bool:
        """Stop a browser and wait for its end; False when there was none."""
        session = self._open.pop(key, None)
        for timer in self._timers.pop(key, []):
            timer.cancel()
        if session is None:
            return False
        await session.aclose()
        return True

    async def end_of(self, principal: str | None) -> int:
        """Stop the browsers of one caller, or of all; returns how many were open."""
        return sum([await self.end(key) for key in list(self._open) if is_of(key[1], principal)])

    async def aclose(self) -> None:
        """Stop all browsers."""
        async with anyio.create_task_group() as group:
            for key in list(self._open):
                group.start_soon(self.end, key)
        if self._ending:
            await asyncio.wait(self._ending, timeout=10)

    def _used(self, key: Key) -> None:
        """Restart the idle timer."""
        timers = self._timers[key]
        for timer in timers[1:]:
            timer.cancel()
        timers[1:] = [asyncio.get_running_loop().call_later(IDLE_S, partial(self._idle, key))]

    def _idle(self, key: Key) -> None:
        async def end() -> None:
            await self.end(key)

        task = asyncio.create_task(end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _started(self, request: CommandRequest, gate: Callable[[], Awaitable[None]]) -> Session:
        boundary = await self._preparation.boundary(request.scope)
        await self._judged(request)
        if boundary.kind == "landlock":
            raise ProviderUnavailable(
                "A browser runs only inside bubblewrap here: Landlock alone cannot keep it off the network.",
                reason="sandbox",
                remedy="Install bubblewrap: apt-get install bubblewrap",
            )
        session_id = new_handle("browser")
        folder = self._home / session_id
        (folder / "out").mkdir(mode=0o700, parents=True)
        # A socket's path is limited to a hundred characters; inside the boundary /tmp is the browser's own.
        sockets = Path("/tmp/sockets") if boundary.holds else Path(tempfile.mkdtemp(prefix="browser-"))  # noqa: S108
        proxy: Gate | None = None
        try:
            proxy = self._gate(request.scope, request.principal, folder, confined=boundary.holds)
            prepared = await self._prepared(request, folder, proxy, sockets)
            session = await self._spawned(session_id, prepared, folder, proxy, gate)
            session.scope = request.scope
            session.leaves = [folder] if boundary.holds else [folder, sockets]
            return session
        except BaseException:
            if proxy is not None:
                await proxy.aclose()
            for left in (folder, *(() if boundary.holds else (sockets,))):
                shutil.rmtree(left, ignore_errors=True)
            raise

    def _gate(self, scope: Scope, principal: Principal, folder: Path, *, confined: bool) -> "Gate | None":
        """The browser's proxy; None where the scope has no network and the kernel enforces that."""
        if confined and not scope.policy.network:
            return None
        from computer_linker.providers.network.gates import Gates

        gate = self._services.use(Gates).for_browser(scope, principal)
        gate.listen(folder if confined else None)
        return gate

    async def _prepared(self, request: CommandRequest, folder: Path, gate: "Gate | None", sockets: Path) -> Prepared:
        from dataclasses import replace

        is_inside = gate is not None and not gate.port
        port = 0 if gate is None else gate.port or _PORT
        through = (
            *(_interpreter(), "-I", "-S", "-c", _inside()),
            *(str(folder), "gate.sock" if is_inside else "-", str(port)),
        )
        program_access = ProgramAccess(
            writes=False,
            # Its only network is the proxy: inside the sandbox there is no other.
            network=False,
            own=(OwnPlace(str(folder), str(folder)),),
            env=_environment(folder, port) | {"AGENT_BROWSER_SOCKET_DIR": str(sockets)},
            # Chromium's own sandbox.
            nests=True,
            through=through,
        )
        return await self._preparation.prepare(replace(request, program_access=program_access))

    async def _spawned(
        self,
        session_id: str,
        prepared: Prepared,
        folder: Path,
        proxy: "Gate | None",
        gate: Callable[[], Awaitable[None]],
    ) -> Session:
        try:
            child = await self._runner.spawn(prepared.plan, prepared.env, stdin=True)
        except BaseException:
            prepared.plan.release()
            raise
        session = Session(session_id, child, prepared, folder, proxy)
        try:
            await gate()
        except BaseException:
            session.release()
            raise
        session.go()
        return session

    async def _judged(self, request: CommandRequest) -> None:
        try:
            await self._preparation.judge(request)
        except NotFound as error:
            if "program" not in error.details:
                raise
            raise ProviderUnavailable(
                "The program agent-browser is not installed.", program=PROGRAM, reason="missing", remedy=INSTALL
            ) from error


def _environment(folder: Path, port: int) -> dict[str, str]:
    chrome = next((path for name in CHROMES if (path := find_program(name))), None)
    if chrome is None:
        raise ProviderUnavailable(
            "No Chromium or Chrome is installed.", program="chromium", reason="missing", remedy=INSTALL
        )
    env = {
        "HOME": str(folder),
        "AGENT_BROWSER_EXECUTABLE_PATH": chrome,
        "AGENT_BROWSER_SESSION": "s",
        "AGENT_BROWSER_ARGS": "\n".join(_ARGS),
        # Nothing can be created there, so downloads of a page fail.
        "AGENT_BROWSER_DOWNLOAD_PATH": "/proc/1/downloads",
    }
    if port:
        # Without `<-loopback>` the browser would bypass the proxy for this machine's own addresses.
        env |= {"AGENT_BROWSER_PROXY": f"http://127.0.0.1:{port}", "AGENT_BROWSER_PROXY_BYPASS": "<-loopback>"}
    return env


def _inside() -> str:
    """The source text of the program that runs beside the browser."""
    from importlib.resources import files

    return files("computer_linker.providers.browser").joinpath("inside.py").read_text("utf-8")


def _interpreter() -> str:
    """A Python that is visible in the sandbox: the system's where there is one, else the running one."""
    return find_program("python3") or str(getattr(sys, "_base_executable", sys.executable))
