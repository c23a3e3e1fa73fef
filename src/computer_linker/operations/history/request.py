"""What the history operations share: their input, and the events they return."""

from typing import Annotated, Any

from pydantic import Field

from computer_linker.audit.store import AuditStore
from computer_linker.model.history import HistoryEvent
from computer_linker.policy.engine import holds
from computer_linker.registry import Capability, Context, Model


class HistoryInput(Model):
    query: Annotated[
        str | None,
        Field(
            description="Words, and terms such as op:file.read ok:false client:x approved:page since:2026-11-01; "
            "text in quotes is found as it is."
        ),
    ] = None


class HistoryOptions(Model):
    limit: Annotated[int, Field(description="Events, or groups, to answer at most; 500 is the most there is.")] = 50
    cursor: Annotated[str | None, Field(description="`nextCursor` of the page before.")] = None


class HistoryPage(Model):
    """Fields of every view."""

    view: str
    machine_id: str | None
    events: list[HistoryEvent]
    next_cursor: str | None
    warnings: Annotated[list[str], Field(description="Set when the history was changed outside the service.")] = []


async def ask(ctx: Context, view: str, input: HistoryInput, options: HistoryOptions) -> dict[str, Any]:
    """The view over this scope's events: the caller's own; all of them with `history:all` and for the owner."""
    from computer_linker.audit.query import Visible
    from computer_linker.audit.views import answer
    from computer_linker.registry.catalog import needs_of

    scope, who = frozenset({ctx.scope.id}), ctx.principal
    sees_all = holds(who, ctx.scope, Capability.HISTORY_ALL)
    visible = None if who.is_owner else Visible(who.id, scope, scope if sees_all else frozenset())

    found = await answer(
        ctx.use(AuditStore),
        view=view,
        visible=visible,
        scope=ctx.scope.id,
        limit=options.limit,
        query=input.query,
        cursor=options.cursor,
        config=ctx.services.config,
        needs_of=needs_of,
    )
    ctx.note(events=len(found["events"]))
    return found
