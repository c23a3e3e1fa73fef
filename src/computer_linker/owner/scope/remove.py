"""scope.remove: clients can no longer use it."""

from typing import Any

from computer_linker.registry.owner import Context, Effect, Example, Model, Note, ScopeArgument, owner_operation
from computer_linker.service.changing_config import change_config
from computer_linker.service.scopes import scope_in


class RemoveInput(Model):
    scope: ScopeArgument


class Removed(Model):
    id: str


@owner_operation(
    "scope.remove",
    did="removed the scope {scope}",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=lambda result: [Note(f"Removed scope {result.id}. Its files are as they were.")],
    examples=[Example("Remove it.", {"input": {"scope": "app"}})],
)
async def scope_remove(ctx: Context, input: RemoveInput) -> Removed:
    """Remove a scope. Its files stay as they are; clients can no longer use it."""

    def edit(document: dict[str, Any]) -> None:
        document["scopes"].remove(scope_in(document, input.scope))

    await change_config(ctx, edit)
    ctx.note(scope=input.scope)
    return Removed(id=input.scope)
