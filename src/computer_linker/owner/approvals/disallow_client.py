"""approvals.disallow_client: a client's own dialog can no longer approve."""

from computer_linker.approvals.approvals import Approvals
from computer_linker.errors import NotFound
from computer_linker.owner.approvals.allow_client import ClientInput
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation


class ClientDisallowed(Model):
    name: str


@owner_operation(
    "approvals.disallow_client",
    did="let the client {client} approve requests no more",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"The dialog of {result.name} can only refuse from now on."],
    examples=[Example("Trust it no longer.", {"input": {"name": "claude-code"}}, runs=False)],
)
async def approvals_disallow_client(ctx: Context, input: ClientInput) -> ClientDisallowed:
    """Let a client's dialog only refuse again."""
    store = ctx.use(Approvals).store
    if not store.keep_only(clients=lambda one: one.name != input.name):
        raise NotFound(f"No client is allowed by the name {input.name!r}.", hint="computer-linker approvals list")
    await store.save()
    ctx.note(client=input.name)
    ctx.effect = "confirmed"
    return ClientDisallowed(name=input.name)
