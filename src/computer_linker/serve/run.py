"""Runs a service: opens its components, serves the socket and HTTP, shuts down cleanly."""

import asyncio
import logging
import secrets
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from computer_linker import __version__
from computer_linker import home as places
from computer_linker.approvals.terminal import TerminalApprovals
from computer_linker.audit.faults import AuditUnavailable
from computer_linker.config.private import FILE_MODE, make_folder
from computer_linker.config.store import ensure
from computer_linker.errors import CannotServe, LinkError
from computer_linker.serve.owner_calls import Controls, owner_principal
from computer_linker.serve.private_socket import PrivateSocket
from computer_linker.service.app import App, open_app
from computer_linker.service.client_setup import service_actions
from computer_linker.service.config_edits import ConfigEdits
from computer_linker.service.fleet import FleetManager
from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.service.lifetime import Lifetime
from computer_linker.service.listeners import Listener, listeners
from computer_linker.service.peers import PeerManager
from computer_linker.service.routing import ComputerRouter
from computer_linker.service.settings import live_config
from computer_linker.service.startup_probe import boundary_found_out
from computer_linker.system import channel, event_loop, os
from computer_linker.transports.bridge.listener import BridgeListener
from computer_linker.transports.local_callers import LocalCallers
from computer_linker.transports.mcp.fast_path import FastPath
from computer_linker.transports.mcp.tools import Tools
from computer_linker.vault.vault import Vault

if TYPE_CHECKING:
    from computer_linker.config.schema import TunnelName
    from computer_linker.tunnels.record import TunnelRecord

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
log = logging.getLogger(__name__)
_MAX_LOG = 1_000_000
_LOCKED_S = 15.0


def serve_socket(home: str, lock: int, listener: Any, idle_exit_s: float | None) -> int:
    """The on-demand service: socket only, ending itself when idle. `lock` is held for as long as this runs."""
    _log_to_stderr()
    sock = _as_socket(listener)
    try:
        _run(_serve(Path(home), sock, None, idle_exit_s))
    except (LinkError, CannotServe) as error:
        hint = error.hint if isinstance(error, CannotServe) else error.details.get("hint", "")
        # Before the socket is removed: a waiting shim reads the reason here.
        sys.stderr.write(f"error: {error.message}\nhint: {hint}\n")
        sys.stderr.flush()
        return 1
    finally:
        _remove_listener(Path(home), sock)
    return 0


@dataclass(frozen=True)
class Reach:
    """How this run is reached over HTTP, and the callbacks once it is: `ready` with the bound address, `listening` with all."""

    host: str | None = None
    port: int | None = None
    ready: Callable[[str], None] | None = None
    tunnel: "TunnelName | None" = None
    announce: "Callable[[TunnelRecord], None] | None" = None
    listening: Callable[[list[Listener]], None] | None = None


def serve(home: Path, reach: Reach, *, log_to_file: bool = False) -> None:
    """Serve the socket and HTTP until a signal ends it. Raises CannotServe or ConfigInvalid, having changed nothing."""
    _log_to_stderr(home / places.LOG_NAME if log_to_file else None)
    _ensure(home)
    lock = _lock_or_take_over(home)
    try:
        sock = _as_socket(places.listen(os.fspath(home)))
        try:
            _run(_serve(home, sock, reach, None))
        finally:
            _remove_listener(home, sock)
    finally:
        os.close(lock)


async def _serve(
    home: Path,
    listener: socket.socket,
    http: Reach | None,
    idle_exit_s: float | None,
) -> None:
    _ensure(home)
    live = live_config(home)
    live.current()
    async with open_app(home, live) as app:
        introspection = ServiceIntrospection(app)
        tools = Tools(app.dispatcher, introspection)
        lifetime = _begun(app)
        await app.services.use(ConfigEdits).watch()
        stop = lifetime.ending
        bridge = BridgeListener(app.services, app.dispatcher, app.computer)
        await bridge.listen(home)
        peers, fleet = app.services.use(PeerManager), app.services.use(FleetManager)
        app.dispatcher.routes = introspection.router = ComputerRouter(peers, fleet)
        app.services.use(TerminalApprovals)
        controls = Controls(app, tools, lifetime)
        fast_path = FastPath(tools)
        private = PrivateSocket(
            listener,
            fast_path,
            controls,
            LocalCallers(app.dispatcher),
            places.make_key(os.fspath(home)),
            app.dispatcher.sessions,
        )
        event_loop.on_stop_signals(stop.set)
        tasks = [asyncio.create_task(private.serve())]
        if http is not None:
            from computer_linker.service.tunnels import TunnelManager
            from computer_linker.transports.http.server import HttpServer

            server = HttpServer(
                app.services, app.dispatcher, tools, introspection, actions=service_actions(app, lifetime)
            )
            await server.listen(http.host, http.port, http.ready)
            app.services.provide(HttpServer, server)
            introspection.http, lifetime.local_url, lifetime.bound_url = server, server.local_url, server.bound_url
            tasks.append(asyncio.create_task(server.serve()))
            introspection.tunnels = TunnelManager(app.services, live, server, http.announce)
            app.services.provide(TunnelManager, introspection.tunnels)
            await introspection.tunnels.start(http.tunnel)
        await peers.start()
        await fleet.start()
        await _announce(app, http, lifetime.bound_url)
        if idle_exit_s is not None:
            tasks.append(asyncio.create_task(_stop_when_idle(app, (private, bridge), stop, idle_exit_s)))
        async with boundary_found_out(app, fast_path, introspection):
            await _until_stopped(tasks, stop)
        _remove_listener(home, listener)
        if introspection.tunnels is not None:
            await introspection.tunnels.aclose()
        await private.close()
        await bridge.aclose()
        await fleet.aclose()
        await peers.aclose()


async def _announce(app: App, http: Reach | None, address: str | None) -> None:
    """Record the start of a service that others can reach, and show its listeners; one that a client starts is no owner's act."""
    if http is None:
        return
    if http.listening is not None:
        http.listening(listeners(app.services, app.config))
    try:
        await app.dispatcher.note("service.start", owner_principal(), {"address": address, "version": __version__})
    except AuditUnavailable as error:
        log.error("the start is not in the history: %s", error.message)


def _ensure(home: Path) -> None:
    if ensure(home, secrets.token_urlsafe(32)):
        log.warning("the state folder %s is new and has no scopes, so clients can do nothing", home)


async def _until_stopped(tasks: list[asyncio.Task[None]], stop: asyncio.Event) -> None:
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
    failed = [task for task in tasks if task.done() and not task.cancelled() and task.exception() is not None]
    for task in (*tasks, waiting):
        task.cancel()
    await asyncio.wait([*tasks, waiting], timeout=15)
    for task in failed:
        error = task.exception()
        if error is not None:
            raise error


async def _stop_when_idle(
    app: App, listeners: tuple[PrivateSocket, BridgeListener], stop: asyncio.Event, idle_exit_s: float
) -> None:
    """End an on-demand service once no client is connected and nothing runs."""
    private, bridge = listeners
    while True:
        quiet_for = time.monotonic() - max(private.last_active, bridge.last_active)
        busy = private.connections or bridge.connections or app.dispatcher.under_way or await app.has_work()
        if not busy and quiet_for >= idle_exit_s:
            stop.set()
            return
        await asyncio.sleep(max(0.05, idle_exit_s if busy else idle_exit_s - quiet_for))


def _lock_or_take_over(home: Path) -> int:
    """Take the state folder's lock. An on-demand service is asked to end; one that serves HTTP is not."""
    from computer_linker.client.socket_client import ask_service

    answer: dict[str, Any] | None = None
    deadline = time.monotonic() + _LOCKED_S
    while time.monotonic() < deadline and (answer is None or answer.get("ok")):
        lock = places.take_lock(os.fspath(home))
        if lock is not None:
            return lock
        # None listens while a command has the lock, or a service that starts or ends.
        answer = answer or ask_service(home, {"action": "make_way"}, is_question=True)
        time.sleep(0.02)
    if answer is None:
        raise CannotServe("another command holds the state folder and does not end", "computer-linker doctor")
    where = answer.get("localUrl")
    raise CannotServe(
        f"a service already runs for this state folder{f' at {where}' if where else ''}",
        "use it, or stop it first: computer-linker stop",
    )


def _run(main: Coroutine[Any, Any, None]) -> None:
    # Clients are served by one thread: it must not wait the default 5 ms for a worker to release the GIL.
    sys.setswitchinterval(0.0005)
    event_loop.run(main)


def _as_socket(listener: Any) -> socket.socket:
    """The listener as a full socket object (the early one is the bare C type)."""
    return socket.socket(fileno=listener.detach())


def _remove_listener(home: Path, listener: socket.socket) -> None:
    """Stop listening; a second call does nothing, so another service's listener is never removed."""
    if listener.fileno() >= 0:
        channel.remove(os.fspath(home), places.SOCKET_NAME, listener)


def _log_to_stderr(also_to: Path | None = None) -> None:
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if also_to is not None:
        handlers.append(_bounded_log(also_to))
    logging.basicConfig(handlers=handlers, level=logging.INFO, format=_LOG_FORMAT)
    # Addresses may be secrets: that of a push webhook is.
    for noisy in ("mcp", "uvicorn.access", "websockets", "httpx", "httpcore", "httpx2", "httpcore2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class MaskedFormatter(logging.Formatter):
    """Writes a record without the stored secrets, in its message and in its traceback."""

    def __init__(self, vault: Vault) -> None:
        super().__init__(_LOG_FORMAT)
        self._vault = vault

    def format(self, record: logging.LogRecord) -> str:
        return self._vault.mask.masked_text(super().format(record))


def _begun(app: App) -> Lifetime:
    """The lifetime of a service whose log is masked from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(MaskedFormatter(app.services.use(Vault)))
    lifetime = Lifetime()
    app.services.provide(Lifetime, lifetime)
    return lifetime


def _bounded_log(path: Path) -> logging.Handler:
    """Log of an unattended service: private, and at most two files of this size."""
    from logging.handlers import RotatingFileHandler

    make_folder(path.parent)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE))
    return RotatingFileHandler(path, maxBytes=_MAX_LOG, backupCount=1, encoding="utf-8")
