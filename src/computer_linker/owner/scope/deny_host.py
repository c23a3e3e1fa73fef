"""scope.deny_host: one host less that programs of a scope reach."""

from computer_linker.errors import InvalidRequest
from computer_linker.model.network import ASK
from computer_linker.owner.scope.allow_host import HostInput, Hosts, Network, change_hosts, text_of
from computer_linker.providers.network.asking import Asking
from computer_linker.registry.owner import Context, Effect, Example, owner_operation


@owner_operation(
    "scope.deny_host",
    did="took a host from the scope {scope}[: {host}]",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=text_of,
    examples=[Example("Take a host back.", {"input": {"scope": "app", "host": "packages.example.org"}})],
)
async def scope_deny_host(ctx: Context, input: HostInput) -> Hosts:
    """Take one entry from the hosts that a scope reaches, also one that was allowed for a while when it was asked for.

    Running commands make no new connections there. With --ask, every host that was asked for is closed too.
    """
    made = await change_hosts(ctx, input, _removed)
    entry = input.entry
    ended = ctx.use(Asking).end(lambda one: one.scope == input.scope and entry in (one.entry, ASK))
    return made.model_copy(update={"changed": made.changed or ended > 0})


def _removed(network: Network, host: str) -> Network:
    if network is True:
        raise InvalidRequest(
            "This scope reaches every host, so no single one can be taken away.",
            hint="first let it reach none: computer-linker scope edit SCOPE --policy network=false",
        )
    left = [entry for entry in network or [] if entry != host]
    return left or False
