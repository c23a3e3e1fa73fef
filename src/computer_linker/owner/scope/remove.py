"""scope.remove: clients can no longer use it."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    Model,
    Note,
    Positional,
    ScopeId,
    Shown,
    owner_operation,
)
from computer_linker.service.changing_config import change_config
from computer_linker.service.scopes import scope_in


class RemoveInput(Model):
    scope: Annotated[str, Field(description="The scope's id."), Positional(), ScopeId()]


class Removed(Model):
    id: str


def _text(result: Removed) -> Iterator[Shown]:
    yield Note(f"Removed scope {result.id}. Its files are as they were.")


@owner_operation(
    "scope.remove",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=_text,
    examples=[Example("Remove it.", {"input": {"scope": "app"}})],
)
async def scope_remove(ctx: Context, input: RemoveInput) -> Removed:
    """Remove a scope. Its files stay as they are; clients can no longer use it."""

    def edit(document: dict[str, Any]) -> None:
        document["scopes"].remove(scope_in(document, input.scope))

    await change_config(ctx, edit)
    ctx.note(scope=input.scope)
    return Removed(id=input.scope)
