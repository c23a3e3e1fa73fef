"""client.list: the clients whose settings this program can write."""

from collections.abc import Iterator

from anyio import to_thread

from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, Table, owner_operation
from computer_linker.service.clients.catalog import this_user
from computer_linker.service.clients.setup import FoundClient, list_clients


class Clients(Model):
    clients: list[FoundClient]


def _text(result: Clients) -> Iterator[Shown]:
    rows = [(client.name, _standing(client), client.file, client.problem or "") for client in result.clients]
    yield Table(rows, ("client", "", "settings", ""))
    yield "next: computer-linker client setup NAME --write"


def _standing(client: FoundClient) -> str:
    if client.projects:
        return f"connected in {' '.join(client.projects)}"
    return "connected" if client.connected else "installed" if client.installed else "not found"


@owner_operation(
    "client.list",
    effect=Effect.OBSERVE,
    where="terminal",
    text=_text,
    examples=[Example("Which clients are there?", {}, runs=False)],
)
async def client_list(ctx: Context) -> Clients:
    """Show which clients are installed, and which have an entry for this service."""
    return Clients(clients=await to_thread.run_sync(list_clients, this_user()))
