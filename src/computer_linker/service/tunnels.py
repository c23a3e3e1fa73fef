"""The service's tunnel: opened by its owner alone, led to a door of its own, closed with the service."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

from computer_linker.auth.owner_token import is_digest
from computer_linker.config.live import LiveConfig
from computer_linker.config.schema import Config, TunnelName
from computer_linker.config.store import update
from computer_linker.errors import CannotServe, InvalidRequest, ProviderUnavailable
from computer_linker.providers.child import find_program
from computer_linker.service.app import App
from computer_linker.tunnels import record as records
from computer_linker.tunnels.base import Surroundings
from computer_linker.tunnels.catalog import NAMES, contracts, detect_all, make
from computer_linker.tunnels.record import TunnelRecord
from computer_linker.tunnels.supervisor import Changed, Pace, Supervisor, allowed

_STOP_S = 15.0
_WAIT_S = 75.0
_SETTLED = ("running", "refused", "failed", "waiting", "stopped")


class Doors(Protocol):
    """The HTTP server, as far as a tunnel needs it."""

    async def open_door(self, port: int, *, has_own_name: bool) -> int: ...

    async def close_door(self) -> None: ...


class TunnelDesk:
    """Answers the `tunnel.*` control actions and keeps what the owner wished for."""

    def __init__(self, app: App, live: LiveConfig, doors: Doors, announce: Changed | None = None) -> None:
        self._app = app
        self._live = live
        self._doors = doors
        self._announce = announce
        self._around = surroundings(app)
        self._supervisor: Supervisor | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._turn = asyncio.Lock()
        self.pace = Pace()

    async def start(self, wished: TunnelName | None) -> None:
        """Open what was wished for at the start, else what the config says. A refusal is told, and the service goes on."""
        name = wished or self._app.config.tunnel.provider
        if name is None:
            return
        try:
            await self._open(name)
        except CannotServe as error:
            # The rest of the service is of use without a tunnel.
            self._supervisor = Supervisor(name, self._around, 0, self._changed, self.pace)
            self._supervisor.refuse(error.message, error.hint)

    async def control(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        """One action of the command line."""
        match action:
            case "tunnel.start":
                return await self._start(request)
            case "tunnel.stop":
                await self._close()
                return {"ok": True, "tunnel": self.shown()}
            case "tunnel.status":
                return {"ok": True, **self.report()}
            case _:
                raise InvalidRequest("There is no such tunnel action.")

    async def aclose(self) -> None:
        """Close the tunnel; the wish stays for the next start."""
        await self._close()

    @property
    def record(self) -> TunnelRecord | None:
        """What is known of the tunnel now."""
        return self._supervisor.record if self._supervisor is not None else records.read(self._app.home)

    def shown(self) -> dict[str, Any]:
        """The tunnel in short."""
        return records.shown(self.record)

    def report(self) -> dict[str, Any]:
        """The tunnel, the providers of this machine and what each would run."""
        return report(self._around, self.record)

    async def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request.get("provider")
        if name not in NAMES:
            raise InvalidRequest(f"There is no tunnel provider of that name. There are: {', '.join(NAMES)}.")
        check_can_open(cast("TunnelName", name), self._around)
        await self._open(cast("TunnelName", name))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                await self._settled.wait()
        return {"ok": True, "tunnel": self.shown()}

    async def _open(self, name: TunnelName) -> None:
        # One at a time: two who open at once must not leave a tunnel that nobody closes.
        async with self._turn:
            await self._end()
            port = await self._doors.open_door(self._app.config.tunnel.port, has_own_name=name == "openai")
            self._settled = asyncio.Event()
            self._supervisor = Supervisor(name, self._around, port, self._changed, self.pace)
            self._task = asyncio.create_task(self._keep(self._supervisor))

    async def _keep(self, supervisor: Supervisor) -> None:
        try:
            await supervisor.run()
        finally:
            self._live.expose(None)
            await asyncio.shield(self._doors.close_door())

    async def _close(self) -> None:
        async with self._turn:
            await self._end()

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=_STOP_S)

    def _changed(self, record: TunnelRecord) -> None:
        # Before anyone hears of the address: whoever hears it may come at once.
        self._live.expose(record.public_url if record.is_open else None)
        if record.state in _SETTLED:
            self._settled.set()
        if self._announce is not None:
            self._announce(record)


def surroundings(app: App) -> Surroundings:
    """What the tunnels of this service work with."""
    return Surroundings(
        app.home, lambda: app.config, app.computer.processes, find_program, lambda: _clear_token(app.config)
    )


def surroundings_without_service(home: Path, config: Config) -> Surroundings:
    """For looking only: nothing can be started with it."""
    from computer_linker.computer.local.probe import this_computer

    return Surroundings(home, lambda: config, this_computer().processes, find_program, lambda: _clear_token(config))


def check_can_open(name: TunnelName, around: Surroundings) -> None:
    """Raise PermissionDenied or ProviderUnavailable when this tunnel may not or cannot be opened. Runs nothing."""
    allowed(around.config())
    found = make(name, around).detect()
    if not found.available:
        raise ProviderUnavailable(found.problem or "It is not available.", hint=found.remedy)


def report(around: Surroundings, record: TunnelRecord | None) -> dict[str, Any]:
    """`tunnel status --json`: truthful from any process."""
    return {
        "tunnel": {**records.shown(record), **_process(record)},
        "providers": [found.to_wire() for found in detect_all(around)],
        "providerContracts": contracts(),
    }


def keep_wish(
    home: Path, provider: TunnelName | None, settings: Callable[[dict[str, Any]], None] | None = None
) -> None:
    """Store what the service opens by itself at its next start, and the provider's settings beside it."""

    def edit(document: dict[str, Any]) -> None:
        tunnel = document.setdefault("tunnel", {})
        if settings is not None:
            settings(tunnel)
        tunnel["provider"] = provider

    update(home, edit)


def _process(record: TunnelRecord | None) -> dict[str, Any]:
    if record is None:
        return {"pid": None, "port": None, "output": []}
    return {"pid": record.pid, "port": record.port, "output": record.output}


def _clear_token(config: Config) -> str | None:
    token = config.owner_token
    return None if token is None or is_digest(token) else token
