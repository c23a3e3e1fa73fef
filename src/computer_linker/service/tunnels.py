"""The service's tunnel: opened by the owner alone, connected to its own listener, closed with the service.

The providers are imported on first use: most services never open a tunnel.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import anyio

from computer_linker.auth.owner_token import is_digest
from computer_linker.config.live import LiveConfig
from computer_linker.config.schema import Config, TunnelName, TunnelSettings
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import CannotServe, Conflict, ExecutionFailed, ProviderUnavailable
from computer_linker.model.base import Model
from computer_linker.policy.writers import find_program, writers_of
from computer_linker.services import Services
from computer_linker.tunnels import record as records
from computer_linker.tunnels.base import Surroundings
from computer_linker.tunnels.record import TunnelRecord, TunnelState

if TYPE_CHECKING:
    from computer_linker.tunnels.supervisor import Supervisor

_STOP_S = 15.0
_WAIT_S = 75.0
_SETTLED = ("running", "refused", "failed", "waiting", "stopped")


class TunnelProcess(TunnelState):
    """The tunnel with its program and what that last said."""

    pid: int | None
    port: int | None
    output: list[str]


class Provider(Model):
    """Whether a provider could be used here, and what would help when not."""

    name: TunnelName
    available: bool
    program: str | None
    problem: str | None
    remedy: str | None


class ProviderMode(Model):
    """One way a provider works: what it runs, where its address comes from, and who reaches that."""

    name: str
    command: str
    public_url_source: str
    reach: str


class ProviderContract(Model):
    """What a provider runs, and where its address comes from."""

    name: TunnelName
    command: str
    lifecycle: list[str]
    public_url_source: str
    modes: list[ProviderMode]
    note: str


class TunnelReport(Model):
    """The tunnel, the providers of this machine and what each would run."""

    tunnel: TunnelProcess
    providers: list[Provider]
    provider_contracts: list[ProviderContract]


class TunnelListener(Protocol):
    """The HTTP server, as far as a tunnel needs it."""

    async def open_tunnel_port(self, port: int, *, has_own_name: bool, provider: str = "") -> int: ...

    async def close_tunnel_port(self) -> None: ...


class TunnelManager:
    """Opens and closes the one tunnel of a service. Without a listener it only reports."""

    def __init__(
        self,
        services: Services,
        live: LiveConfig | None = None,
        listener: TunnelListener | None = None,
        announce: Callable[[TunnelRecord], None] | None = None,
    ) -> None:
        self._services, self._live, self._listener, self._announce = services, live, listener, announce
        self._trial: TunnelSettings | None = None
        """Settings that are tried out: they are stored once the tunnel is open with them."""
        self._around = Surroundings(
            services.home,
            self._config,
            services.use(Dispatcher).computer.processes,
            self._find_program,
            self._clear_token,
        )
        self._supervisor: Supervisor | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._turn = asyncio.Lock()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def start(self, requested: TunnelName | None) -> None:
        """Open the tunnel requested for this run, else the configured one. A refusal leaves the service running."""
        name = requested or self._services.config.tunnel.provider
        if name is not None:
            await self._open_or_refuse(name)

    async def aclose(self) -> None:
        """Close the tunnel, for this run of the service."""
        await self._end()
        async with self._turn:
            await self._end()

    @property
    def record(self) -> TunnelRecord | None:
        """The tunnel's present record."""
        return self._supervisor.record if self._supervisor is not None else records.read(self._services.home)

    def shown(self) -> TunnelState | None:
        """The tunnel as clients see it; None when this service has had none."""
        return None if self._supervisor is None else self.state()

    def state(self) -> TunnelState:
        """The tunnel in short."""
        return records.shown(self.record)

    def report(self) -> TunnelReport:
        """The tunnel, the providers of this machine and what each would run. Runs nothing."""
        return tunnel_report(self._around, self.record)

    async def expose(
        self, name: TunnelName, settings: TunnelSettings, store: Callable[[], Awaitable[object]]
    ) -> TunnelState:
        """Open a tunnel with these settings and, once it is open, `store` them.

        Raises the error that prevented it; the previous state is then restored, another open tunnel included.
        """
        async with self._turn:
            before, running = self._supervisor, self._task
            record = records.kept(self._services.home)
            self._trial = settings
            try:
                check_can_open(name, self._around)
                await self._open(name)
                await self._wait_until_open(name)
                await store()
            except BaseException as error:
                self._trial = None
                with anyio.CancelScope(shield=True):
                    if self._task is not running:
                        await self._put_back(before, running, record)
                if isinstance(error, CannotServe):
                    raise ExecutionFailed(error.message, hint=error.hint) from error
                raise
            finally:
                self._trial = None
            return self.state()

    async def _wait_until_open(self, name: TunnelName) -> None:
        with anyio.move_on_after(_WAIT_S):
            await self._settled.wait()
        state = self.state()
        if state.state != "running":
            why = f": {state.last_error}" if state.last_error else "."
            raise ExecutionFailed(f"The {name} tunnel is {state.state}{why}", hint=state.hint or "")

    async def _put_back(
        self, before: "Supervisor | None", running: asyncio.Task[None] | None, record: bytes | None
    ) -> None:
        await self._end()
        self._supervisor = before
        records.put_back(self._services.home, record)
        # Cancelled, it was open until this one took its place; else it had ended by itself.
        if before is not None and running is not None and running.cancelled():
            await self._open_or_refuse(before.name)

    async def _open_or_refuse(self, name: TunnelName) -> None:
        from computer_linker.tunnels.supervisor import Supervisor

        try:
            await self._open(name)
        except CannotServe as error:
            self._supervisor = Supervisor(name, self._around, 0, self._changed)
            self._supervisor.refuse(error.message, error.hint)

    async def _open(self, name: TunnelName) -> None:
        from computer_linker.tunnels.supervisor import Supervisor

        if self._listener is None:
            raise Conflict("A tunnel leads to the HTTP service.", hint=f"computer-linker start --tunnel {name}")
        await self._end()
        port = await self._listener.open_tunnel_port(
            self._config().tunnel.port, has_own_name=name == "openai", provider=name
        )
        self._settled = asyncio.Event()
        self._supervisor = Supervisor(name, self._around, port, self._changed)
        self._task = asyncio.create_task(self._keep_open(self._supervisor, self._listener))

    async def _keep_open(self, supervisor: "Supervisor", listener: TunnelListener) -> None:
        try:
            await supervisor.run()
        finally:
            if self._live is not None:
                self._live.expose(None)
            await asyncio.shield(listener.close_tunnel_port())

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=_STOP_S)

    def _changed(self, record: TunnelRecord) -> None:
        # Before the address is announced: a client may connect at once.
        if self._live is not None:
            self._live.expose(record.public_url if record.is_open else None)
        if record.state in _SETTLED:
            self._settled.set()
        if self._announce is not None:
            self._announce(record)

    def _config(self) -> Config:
        config = self._services.config
        return config if self._trial is None else config.model_copy(update={"tunnel": self._trial})

    def _find_program(self, name: str) -> str | None:
        return find_program(name, writers=writers_of(self._services.config.scopes))

    def _clear_token(self) -> str | None:
        return _clear_token(self._services.config)


def surroundings_without_service(home: Path, config: Config) -> Surroundings:
    """Surroundings for reports only: nothing can be started with them."""
    from computer_linker.computer.local.probe import this_computer

    def find(name: str) -> str | None:
        return find_program(name, writers=writers_of(config.scopes))

    return Surroundings(home, lambda: config, this_computer().processes, find, lambda: _clear_token(config))


def check_can_open(name: TunnelName, around: Surroundings) -> None:
    """Raise PermissionDenied or ProviderUnavailable when this tunnel may not or cannot be opened. Runs nothing."""
    from computer_linker.tunnels.supervisor import allowed, make

    allowed(around.config())
    found = make(name, around).detect()
    if not found.available:
        raise ProviderUnavailable(found.problem or "It is not available.", hint=found.remedy)


def tunnel_report(around: Surroundings, record: TunnelRecord | None) -> TunnelReport:
    """The report for `doctor`, from any process."""
    from computer_linker.tunnels.supervisor import contracts, detect_all

    pid, port, output = (None, None, []) if record is None else (record.pid, record.port, record.output)
    return TunnelReport(
        tunnel=TunnelProcess(**dict(records.shown(record)), pid=pid, port=port, output=output),
        providers=[Provider.from_wire(found.to_wire()) for found in detect_all(around)],
        provider_contracts=[ProviderContract.from_wire(contract) for contract in contracts()],
    )


def _clear_token(config: Config) -> str | None:
    token = config.owner_token
    return None if token is None or is_digest(token) else token
