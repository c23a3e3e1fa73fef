"""scope.list: what clients may use."""

from collections.abc import Iterator

from computer_linker.model.scope import Scope
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, Table, owner_operation
from computer_linker.service.scopes import warn_of_refusal


class Scopes(Model):
    scopes: list[Scope]


def _text(result: Scopes) -> Iterator[Shown]:
    if not result.scopes:
        yield Note("No scopes yet. Run: computer-linker scope add FOLDER")
        return
    rows = [(s.id, s.type, " ".join(s.roots), " ".join(s.capabilities)) for s in result.scopes]
    yield Table(rows, ("scope", "type", "roots", "capabilities"))


@owner_operation("scope.list", effect=Effect.OBSERVE, text=_text, examples=[Example("What clients may use.", {})])
async def scope_list(ctx: Context) -> Scopes:
    """Show every scope with its folders and capabilities."""
    warn_of_refusal(ctx)
    return Scopes(scopes=list(ctx.services.config.scopes))
