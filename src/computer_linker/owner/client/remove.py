"""client.remove: take this service's entry out of a client's settings."""

from anyio import to_thread

from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.clients.catalog import this_user
from computer_linker.service.clients.setup import ClientChange, client_named, remove


class ClientRemoveInput(Model):
    client: str


@owner_operation(
    "client.remove",
    did="took back the setup of {client}",
    effect=Effect.CHANGE,
    where="terminal",
    is_derived=False,
    examples=[Example("Disconnect Codex.", {"input": {"client": "codex"}}, runs=False)],
)
async def client_remove(ctx: Context, input: ClientRemoveInput) -> ClientChange:
    """Remove this service's entry from a client's settings, keeping a backup."""
    client = client_named(input.client)
    done = await to_thread.run_sync(lambda: remove(client, this_user(), write=True))
    ctx.effect = "confirmed"
    ctx.note(client=input.client, written=done.written)
    return done
