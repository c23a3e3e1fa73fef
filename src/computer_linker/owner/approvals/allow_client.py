"""approvals.allow_client: let a client's own dialog answer for the owner."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.store import AllowedClient
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Positional, Shown, owner_operation


class ClientInput(Model):
    name: Annotated[
        str, Field(min_length=1, max_length=80, description="The name the client gives itself."), Positional()
    ]


class ClientAllowed(Model):
    name: str


def _text(result: ClientAllowed) -> Iterator[Shown]:
    yield f"The dialog of {result.name} can now approve requests of {result.name}, once each."
    yield Note("That client then speaks for you, and its name is its own claim: any program of yours can use it.")
    yield Note(f"To take it back: computer-linker approvals disallow-client {result.name}")


@owner_operation(
    "approvals.allow_client",
    did="let the client {client} approve requests",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("Trust a client's dialog.", {"input": {"name": "claude-code"}})],
)
async def approvals_allow_client(ctx: Context, input: ClientInput) -> ClientAllowed:
    """Let the dialog of a client on this machine approve its own requests. By default it can only refuse them."""
    store = ctx.use(Approvals).store
    store.add(AllowedClient(name=input.name, allowed_at=datetime.now(UTC).isoformat(timespec="seconds")))
    await store.save()
    ctx.note(client=input.name)
    ctx.effect = "confirmed"
    return ClientAllowed(name=input.name)
