"""client.remove: take this service's entry out of a client's settings."""

from anyio import to_thread

from computer_linker.errors import ExecutionFailed, NotFound
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.clients.catalog import known_clients, this_user
from computer_linker.service.clients.change import ClientChange
from computer_linker.service.clients.faults import CannotEdit
from computer_linker.service.clients.setup import remove


class ClientRemoveInput(Model):
    client: str


@owner_operation(
    "client.remove",
    effect=Effect.CHANGE,
    where="terminal",
    is_derived=False,
    examples=[Example("Disconnect Codex.", {"input": {"client": "codex"}}, runs=False)],
)
async def client_remove(ctx: Context, input: ClientRemoveInput) -> ClientChange:
    """Remove this service's entry from a client's settings, keeping a backup."""
    client = known_clients().get(input.client)
    if client is None:
        raise NotFound(f"There is no client {input.client[:40]!r} whose settings can be written.")
    try:
        done = await to_thread.run_sync(lambda: remove(client, this_user(), write=True))
    except CannotEdit as error:
        raise ExecutionFailed(
            f"{client.file(this_user())} was left as it is: {error}",
            hint="computer-linker client setup prints the lines",
        ) from error
    ctx.effect = "confirmed"
    ctx.note(client=input.client, written=done["written"])
    return ClientChange.from_wire(done)
