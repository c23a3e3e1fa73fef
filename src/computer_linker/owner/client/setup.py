"""client.setup: write this service's entry into a client's settings."""

from anyio import to_thread

from computer_linker.client.socket_client import running_url
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.clients.catalog import this_user
from computer_linker.service.clients.setup import ClientChange, Service, Transport, client_named, set_up


class ClientSetupInput(Model):
    client: str
    over: Transport = "stdio"
    with_token: bool = False


@owner_operation(
    "client.setup",
    did="set up {client}[ over {over}]",
    effect=Effect.CHANGE,
    where="terminal",
    is_derived=False,
    needs_setup=True,
    examples=[Example("Connect Codex.", {"input": {"client": "codex"}}, runs=False)],
)
async def client_setup(ctx: Context, input: ClientSetupInput) -> ClientChange:
    """Write this service's entry into a client's settings, keeping a backup."""
    client, home = client_named(input.client), ctx.services.home

    def write() -> ClientChange:
        service = Service(ctx.services.config, home, running_url(home))
        return set_up(client, this_user(), service, input.over, with_token=input.with_token, write=True)

    done = await to_thread.run_sync(write)
    ctx.effect = "confirmed"
    ctx.note(client=input.client, over=input.over, written=done.written)
    return done
