"""client.setup: write this service's entry into a client's settings."""

from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field

from computer_linker.errors import ExecutionFailed, NotFound
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.clients.catalog import known_clients, this_user
from computer_linker.service.clients.change import ClientChange
from computer_linker.service.clients.faults import CannotEdit
from computer_linker.service.clients.setup import Service, set_up


class ClientSetupInput(Model):
    client: str
    over: Literal["stdio", "http"] = "stdio"
    local_url: Annotated[str | None, Field(description="Where the running service is reached.")] = None
    with_token: bool = False


@owner_operation(
    "client.setup",
    effect=Effect.CHANGE,
    where="terminal",
    is_derived=False,
    needs_setup=True,
    examples=[Example("Connect Codex.", {"input": {"client": "codex"}}, runs=False)],
)
async def client_setup(ctx: Context, input: ClientSetupInput) -> ClientChange:
    """Write this service's entry into a client's settings, keeping a backup."""
    client = known_clients().get(input.client)
    if client is None:
        raise NotFound(f"There is no client {input.client[:40]!r} whose settings can be written.")
    service = Service(ctx.services.config, ctx.services.home, input.local_url)
    try:
        connection = service.connection(input.over, with_token=input.with_token)
        done = await to_thread.run_sync(lambda: set_up(client, this_user(), connection, write=True))
    except CannotEdit as error:
        raise ExecutionFailed(
            f"{client.file(this_user())} was left as it is: {error}",
            hint="computer-linker client setup prints the lines",
        ) from error
    ctx.effect = "confirmed"
    ctx.note(client=input.client, over=input.over, written=done["written"])
    return ClientChange.from_wire(done)
