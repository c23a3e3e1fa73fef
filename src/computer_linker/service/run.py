"""The life of a service: open the parts, serve the socket and HTTP, end cleanly."""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from computer_linker import home as places
from computer_linker.config.private import FILE_MODE, make_folder
from computer_linker.config.store import ensure
from computer_linker.errors import CannotServe, LinkError
from computer_linker.service.actions import service_actions
from computer_linker.service.app import App, open_app
from computer_linker.service.approvals import ApprovalDesk
from computer_linker.service.control import Controls
from computer_linker.service.door import Door
from computer_linker.service.elsewhere import Elsewhere
from computer_linker.service.fleet import FleetDesk
from computer_linker.service.foresight import boundary_found_out
from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.service.peers import PeerDesk
from computer_linker.service.settings import live_config
from computer_linker.service.start import take_lock
from computer_linker.service.tunnel_wish import Tunnels
from computer_linker.transports.bridge.door import BridgeDoor
from computer_linker.transports.local_callers import LocalCallers
from computer_linker.transports.mcp.lane import Lane
from computer_linker.transports.mcp.tools import Tools

if TYPE_CHECKING:
    from computer_linker.config.schema import TunnelName
    from computer_linker.tunnels.record import TunnelRecord

log = logging.getLogger(__name__)
_MAX_LOG = 1_000_000


def serve_socket(home: str, lock: int, listener: Any, idle_exit_s: float | None) -> int:
    """The on-demand service: socket only, ending itself when idle. `lock` is held for as long as this runs."""
    _log_to_stderr()
    door = _as_socket(listener)
    try:
        _run(_serve(Path(home), door, None, idle_exit_s))
    except (LinkError, CannotServe) as error:
        hint = error.hint if isinstance(error, CannotServe) else error.details.get("hint", "")
        # Before the socket goes: a shim that waits on it looks here for the reason.
        sys.stderr.write(f"error: {error.message}\nhint: {hint}\n")
        sys.stderr.flush()
        return 1
    finally:
        _unlink_socket(Path(home), door)
    return 0


@dataclass(frozen=True)
class Reach:
    """How this run is to be reached over HTTP, and who hears that it is."""

    host: str | None = None
    port: int | None = None
    ready: Callable[[str], None] | None = None
    tunnel: "TunnelName | None" = None
    announce: "Callable[[TunnelRecord], None] | None" = None


def serve(home: Path, reach: Reach, *, log_to_file: bool = False) -> None:
    """Serve the socket and HTTP until a signal ends it. Raises CannotServe or ConfigInvalid, having changed nothing."""
    _log_to_stderr(home / places.LOG_NAME if log_to_file else None)
    ensure(home, secrets.token_urlsafe(32))
    lock = _lock_or_take_over(home)
    try:
        door = _as_socket(places.listen(os.fspath(home)))
        try:
            _run(_serve(home, door, reach, None))
        finally:
            _unlink_socket(home, door)
    finally:
        os.close(lock)


async def _serve(
    home: Path,
    listener: socket.socket,
    http: Reach | None,
    idle_exit_s: float | None,
) -> None:
    ensure(home, secrets.token_urlsafe(32))
    live = live_config(home)
    live.current()
    async with open_app(home, live) as app:
        introspection = ServiceIntrospection(app)
        tools = Tools(app.dispatcher, introspection)
        stop = asyncio.Event()
        bridge = BridgeDoor(app.services, app.dispatcher, app.computer)
        await bridge.listen(home)
        peers, fleet = PeerDesk(app), FleetDesk(app)
        app.dispatcher.routes = introspection.elsewhere = Elsewhere(peers, fleet)
        approvals = ApprovalDesk(app)
        controls = Controls(app, tools, stop, (peers, fleet), approvals)
        door = Door(listener, Lane(tools), controls, LocalCallers(app.dispatcher), places.make_key(os.fspath(home)))
        _stop_on_signals(stop)
        tasks = [asyncio.create_task(door.serve())]
        if http is not None:
            from computer_linker.providers.processes.open_door import OpenDoor
            from computer_linker.transports.http.server import HttpServer

            server = HttpServer(
                app.services, app.dispatcher, tools, introspection, actions=service_actions(app, controls)
            )
            await server.listen(http.host, http.port, http.ready)
            app.services.use(OpenDoor).is_listening = True
            introspection.http, controls.local_url, controls.bound_url = server, server.local_url, server.bound_url
            tasks.append(asyncio.create_task(server.serve()))
            controls.tunnels = introspection.tunnels = Tunnels(app, live, server, http.announce)
            await controls.tunnels.start(http.tunnel)
        introspection.fleet = fleet
        await peers.start()
        await fleet.start()
        if idle_exit_s is not None:
            tasks.append(asyncio.create_task(_stop_when_idle(app, (door, bridge), stop, idle_exit_s)))
        async with boundary_found_out(app):
            await _until_stopped(tasks, stop)
        _unlink_socket(home, listener)
        if controls.tunnels is not None:
            await controls.tunnels.aclose()
        await door.close()
        await bridge.aclose()
        await fleet.aclose()
        await peers.aclose()
        await approvals.aclose()


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


async def _stop_when_idle(app: App, doors: tuple[Door, BridgeDoor], stop: asyncio.Event, idle_exit_s: float) -> None:
    """End a service that a shim started once nobody is connected and nothing is under way."""
    door, bridge = doors
    while True:
        quiet_for = time.monotonic() - max(door.last_active, bridge.last_active)
        busy = door.guests or bridge.guests or app.dispatcher.under_way or await app.has_work()
        if not busy and quiet_for >= idle_exit_s:
            stop.set()
            return
        await asyncio.sleep(max(0.05, idle_exit_s if busy else idle_exit_s - quiet_for))


def _lock_or_take_over(home: Path) -> int:
    """The state folder's lock. An on-demand service is asked to make way; one that serves HTTP is not."""
    from computer_linker.client.socket_client import ask_service

    lock = take_lock(os.fspath(home))
    if lock is not None:
        return lock
    answer = ask_service(home, {"action": "make_way"})
    deadline = time.monotonic() + 15
    while answer is not None and answer.get("ok") and time.monotonic() < deadline:
        lock = take_lock(os.fspath(home))
        if lock is not None:
            return lock
        time.sleep(0.02)
    where = (answer or {}).get("localUrl")
    raise CannotServe(
        f"a service already runs for this state folder{f' at {where}' if where else ''}",
        "use it, or stop it first: computer-linker stop",
    )


def _run(main: Coroutine[Any, Any, None]) -> None:
    # Clients are served by one thread: it must not wait the usual 5 ms for a worker to let go of the interpreter.
    sys.setswitchinterval(0.0005)
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)


def _as_socket(listener: Any) -> socket.socket:
    """The listener as a full socket object (the early one is the bare C type)."""
    return socket.socket(fileno=listener.detach())


def _unlink_socket(home: Path, listener: socket.socket) -> None:
    """Stop listening; a second time does nothing, so another service's socket is never taken away."""
    if listener.fileno() >= 0:
        (home / places.SOCKET_NAME).unlink(missing_ok=True)
        listener.close()


def _log_to_stderr(also_to: Path | None = None) -> None:
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if also_to is not None:
        handlers.append(_bounded_log(also_to))
    logging.basicConfig(handlers=handlers, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for noisy in ("mcp", "uvicorn.access", "websockets"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _bounded_log(path: Path) -> logging.Handler:
    """The log of a service that nobody watches: private, and never more than two files of this size."""
    from logging.handlers import RotatingFileHandler

    make_folder(path.parent)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE))
    return RotatingFileHandler(path, maxBytes=_MAX_LOG, backupCount=1, encoding="utf-8")
