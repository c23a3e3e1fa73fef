"""secret.remove: forget a secret."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, Shown, owner_operation
from computer_linker.vault.vault import Vault


class RemoveInput(Model):
    name: Annotated[str, Field(description="The secret's name."), Positional()]


class Removed(Model):
    name: str


def _text(result: Removed) -> Iterator[Shown]:
    yield f"Removed {result.name}. Requests of running programs carry its placeholder from now on."


@owner_operation(
    "secret.remove",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=_text,
    examples=[Example("Forget it.", {"input": {"name": "api-token"}}, runs=False)],
)
async def secret_remove(ctx: Context, input: RemoveInput) -> Removed:
    """Remove a secret. It is not kept for undo, and no request carries it any more."""
    ctx.use(Vault).remove(input.name)
    ctx.note(secret=input.name)
    ctx.effect = "confirmed"
    return Removed(name=input.name)
