"""The reports of `status` and `doctor`, from inside a service or without one."""

from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.approvals.approvals import Approvals
from computer_linker.computer.manifest import FacetState
from computer_linker.config.diagnose import Finding
from computer_linker.config.load import parse
from computer_linker.config.schema import Config, TunnelName
from computer_linker.config.store import first_document
from computer_linker.errors import ConfigInvalid
from computer_linker.model.base import Model
from computer_linker.registry.context import Context
from computer_linker.service.doctor import Diagnosis, Status, diagnosis, status_of
from computer_linker.service.lifetime import Lifetime, UserContext, this_user
from computer_linker.service.listeners import Listener, bound_host, listeners
from computer_linker.service.settings import live_config
from computer_linker.service.tunnels import TunnelManager, TunnelReport, surroundings_without_service, tunnel_report
from computer_linker.tunnels import record as records
from computer_linker.tunnels.record import TunnelState


class ServiceState(Model):
    running: bool
    local_url: str | None
    public_url: str | None


class StatusTunnel(TunnelState):
    """The tunnel, and what the config asks for."""

    requested: Annotated[TunnelName | None, Field(description="What the service opens at each start.")]


class StatusScope(Model):
    id: str
    type: str
    roots: list[str]
    capabilities: list[str]


class StatusReport(Model):
    """Whether clients can use this computer."""

    machine_id: str
    machine_name: str
    home: str
    service: ServiceState
    listeners: list[Listener]
    tunnel: StatusTunnel
    configured_url: str
    scopes: list[StatusScope]
    waiting: Annotated[int, Field(description="How many requests wait for the owner's answer.")] = 0
    status: Status


class Addresses(Model):
    mcp: str
    api: str
    public: str | None


class DoctorReport(Diagnosis):
    """Everything `doctor` looked at. A config that is refused is among the findings, and the rest is looked at all the same."""

    home: str
    user: UserContext
    repairs: Annotated[list[str], Field(description="What `--fix` did, one sentence each.")] = []
    service: ServiceState
    listeners: list[Listener]
    urls: Addresses
    tunnels: TunnelReport
    facets: dict[str, FacetState]


async def status_report(ctx: Context) -> StatusReport:
    """The report of `status`. Raises ConfigInvalid when no config is in force."""
    services = ctx.services
    config = services.config
    # The address is checked as if it were served, as `start` would do.
    bound = bound_host(services.peek(Lifetime))
    status = await to_thread.run_sync(lambda: status_of(config, services.home, serving_http=True, bound=bound))
    tunnel = records.shown(records.read(services.home))
    approvals = services.peek(Approvals)
    return StatusReport(
        machine_id=config.machine_id,
        machine_name=config.machine_name,
        home=str(services.home),
        service=_service(ctx, config),
        listeners=listeners(services, config),
        tunnel=StatusTunnel(**tunnel.model_dump(), requested=config.tunnel.provider),
        configured_url=f"http://{config.host}:{config.port}/mcp",
        scopes=[StatusScope(id=s.id, type=s.type, roots=s.roots, capabilities=s.capabilities) for s in config.scopes],
        waiting=len(approvals.waiting()) if approvals is not None else 0,
        status=status,
    )


async def doctor_report(ctx: Context) -> DoctorReport:
    """The report of `doctor`. A config that is refused is reported with the rest."""
    services = ctx.services
    config, refusal = _config(ctx)
    bound = bound_host(services.peek(Lifetime))
    found = await to_thread.run_sync(diagnosis, config, services.home, refusal, bound)
    shown = config if config is not None else parse(first_document(None))
    service = _service(ctx, config)
    base = (service.local_url or f"http://{shown.host}:{shown.port}/mcp").removesuffix("/mcp")
    manager = services.peek(TunnelManager) if config is not None else None
    around = surroundings_without_service(services.home, shown)
    return DoctorReport(
        **{name: getattr(found, name) for name in Diagnosis.model_fields},
        home=str(services.home),
        user=this_user(),
        service=service,
        listeners=listeners(services, config),
        urls=Addresses(mcp=f"{base}/mcp", api=f"{base}/api/v1/control", public=shown.public_base_url),
        tunnels=manager.report() if manager is not None else tunnel_report(around, records.read(services.home)),
        facets=dict(ctx.computer.capabilities().facets),
    )


def fixable(findings: list[Finding]) -> int:
    """How many of these `doctor --fix` repairs."""
    return sum(finding.fixable for finding in findings)


def _config(ctx: Context) -> tuple[Config | None, ConfigInvalid | None]:
    """The config in force, and why the file is refused now."""
    try:
        live_config(ctx.services.home).current()
        refusal = None
    except ConfigInvalid as error:
        refusal = error
    try:
        return ctx.services.config, refusal
    except ConfigInvalid as error:
        return None, refusal or error


def _service(ctx: Context, config: Config | None) -> ServiceState:
    running = ctx.services.peek(Lifetime)
    return ServiceState(
        running=running is not None,
        local_url=running.local_url if running is not None else None,
        public_url=config.public_base_url if config is not None else None,
    )
