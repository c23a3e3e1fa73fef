"""tunnel.detect: which providers could be used here."""

from collections.abc import Sequence

from computer_linker.registry.owner import Context, Effect, Example, Model, Table, owner_operation
from computer_linker.service.tunnels import Provider, TunnelManager


class Providers(Model):
    providers: list[Provider]


def provider_table(providers: Sequence[Provider]) -> Table:
    """The providers as a table."""
    rows = [
        (found.name, "ok" if found.available else "missing", found.program or "", found.problem or "")
        for found in providers
    ]
    return Table(rows, ("provider", "", "program", ""))


@owner_operation(
    "tunnel.detect",
    effect=Effect.OBSERVE,
    text=lambda result: [provider_table(result.providers)],
    examples=[Example("What could be used.", {})],
)
async def tunnel_detect(ctx: Context) -> Providers:
    """Which providers could be used here, and what the others lack. Runs none of them."""
    return Providers(providers=ctx.use(TunnelManager).report().providers)
