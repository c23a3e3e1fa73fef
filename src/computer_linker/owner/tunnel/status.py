"""tunnel.status: whether MCP is reachable from elsewhere."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.config.schema import TunnelName
from computer_linker.errors import ExecutionFailed
from computer_linker.owner.tunnel.detect import provider_table
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, Table, owner_operation
from computer_linker.service.tunnels import TunnelManager, TunnelReport

_SHOWN_LINES = 8


class StatusInput(Model):
    check: Annotated[bool, Field(description="Ask the public address whether it leads here.")] = False


class AddressCheck(Model):
    ok: bool
    problem: str | None


class TunnelStatus(TunnelReport):
    wished: Annotated[TunnelName | None, Field(description="What the service opens at each start.")]
    check: Annotated[AddressCheck | None, Field(description="Null when it was not asked for.")] = None


def _text(result: TunnelStatus) -> Iterator[Shown]:
    tunnel, check = result.tunnel, result.check
    rows = [
        ("tunnel", tunnel.provider or "none"), ("state", tunnel.state), ("address", tunnel.public_url),
        ("tunnel id", tunnel.tunnel_id), ("since", tunnel.since), ("restarts", tunnel.restarts or None),
        ("why", tunnel.last_error), ("hint", tunnel.hint), ("next try", tunnel.retry_at),
        ("at each start", result.wished), ("check", check and (check.problem or "ok")),
    ]  # fmt: skip
    yield Table([(name, str(value)) for name, value in rows if value is not None])
    if tunnel.state not in ("running", "stopped"):
        yield from (f"  {line}" for line in tunnel.output[-_SHOWN_LINES:])
    yield ""
    yield provider_table(result.providers)


def _exit_code(result: TunnelStatus) -> int:
    is_missing = result.wished is not None and result.tunnel.state not in ("running", "reconnecting")
    return 1 if is_missing or (result.check is not None and not result.check.ok) else 0


@owner_operation(
    "tunnel.status",
    effect=Effect.OBSERVE,
    text=_text,
    exit_code=_exit_code,
    examples=[Example("Is it open?", {})],
)
async def tunnel_status(ctx: Context, input: StatusInput = StatusInput()) -> TunnelStatus:
    """Show the tunnel, its address and the providers of this machine; ends non-zero when a wished tunnel is not open."""
    report = ctx.use(TunnelManager).report()
    return TunnelStatus(
        tunnel=report.tunnel,
        providers=report.providers,
        provider_contracts=report.provider_contracts,
        wished=ctx.services.config.tunnel.provider,
        check=await _checked(report.tunnel.public_url) if input.check else None,
    )


async def _checked(url: str | None) -> AddressCheck:
    from computer_linker.tunnels.manual import check_address

    if url is None:
        return AddressCheck(ok=False, problem="There is no public address.")
    try:
        await check_address(url)
    except ExecutionFailed as error:
        return AddressCheck(ok=False, problem=error.message)
    return AddressCheck(ok=True, problem=None)
