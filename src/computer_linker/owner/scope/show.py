"""scope.show: everything about one scope."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.model.scope import Scope
from computer_linker.registry.owner import Context, Effect, Example, Model, ScopeArgument, Shown, Table, owner_operation
from computer_linker.service.scopes import known_scope, warn_of_refusal


class ShowInput(Model):
    scope: ScopeArgument


class ShownScope(Model):
    scope: Scope
    chosen: Annotated[list[str], Field(description="The policy fields that the config has; the others are defaults.")]
    refused: Annotated[dict[str, str], Field(description="Folders that are not opened, and why.")]


def _text(result: ShownScope) -> Iterator[Shown]:
    scope = result.scope
    rows = [("scope", scope.id), ("name", scope.name), ("type", scope.type)]
    rows += [
        ("folder", root + (f" (not opened: {result.refused[root]})" if root in result.refused else ""))
        for root in scope.roots
    ]
    rows += [("may", capability) for capability in scope.capabilities] or [("may", "nothing")]
    yield Table(rows)
    yield ""
    policy = scope.policy.to_wire()
    yield Table(
        [(name, _plain(value), "" if name in result.chosen else "default") for name, value in policy.items()],
        ("policy", "", ""),
    )
    yield f"change it with: computer-linker scope edit {scope.id} --allow CAPABILITY --policy NAME=VALUE"


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value) or "none"
    return "not set" if value is None else value if isinstance(value, str) else json.dumps(value)


@owner_operation(
    "scope.show",
    effect=Effect.OBSERVE,
    text=_text,
    examples=[Example("What may clients do there?", {"input": {"scope": "app"}})],
)
async def scope_show(ctx: Context, input: ShowInput) -> ShownScope:
    """Show one scope: its folders, what clients may do there, and every policy value with its default."""
    warn_of_refusal(ctx)
    scope = known_scope(ctx.services.config, input.scope)
    chosen = [
        field.alias or name
        for name, field in type(scope.policy).model_fields.items()
        if name in scope.policy.model_fields_set
    ]
    return ShownScope(scope=scope, chosen=chosen, refused=scope.refused)
