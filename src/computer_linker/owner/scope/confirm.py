"""scope.confirm: take a scope's folders as they are now."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Note, ScopeArgument, Shown, owner_operation
from computer_linker.service.scopes import pin_roots


class ConfirmInput(Model):
    scope: ScopeArgument


class Confirmed(Model):
    id: str
    roots: Annotated[dict[str, str], Field(description="Each root, and where it really lies.")]


def _text(result: Confirmed) -> Iterator[Shown]:
    for root, real in result.roots.items():
        yield Note(f"Scope {result.id}: {root} is {'this folder' if root == real else real} from now on.")


@owner_operation(
    "scope.confirm",
    did="confirmed the folders of the scope {scope}",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=_text,
    examples=[Example("It was moved.", {"input": {"scope": "app"}})],
)
async def scope_confirm(ctx: Context, input: ConfirmInput) -> Confirmed:
    """Take a scope's folders as they are now, after one was moved, replaced or became a link.

    Until then such a folder is not opened: any program that can write beside it could have replaced it.
    """
    found = await pin_roots(ctx.services.home, input.scope)
    ctx.effect = "confirmed"
    ctx.note(scope=input.scope, roots=len(found))
    return Confirmed(id=input.scope, roots=found)
