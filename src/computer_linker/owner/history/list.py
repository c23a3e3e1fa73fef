"""history.list: one view of the whole history."""

from dataclasses import replace
from typing import Annotated, Any

from anyio import to_thread
from pydantic import Field

from computer_linker.errors import NotFound
from computer_linker.model.history import HistoryEvent, HistoryGroup, HistorySummary, ReplayTemplate, Suggestion, View
from computer_linker.registry.owner import Context, Effect, Example, Model, Named, ScopeId, owner_operation

MAX_EVENTS = 100_000


class ListInput(Model):
    view: Annotated[View, Field(description="Which view.")] = "last"
    scope: Annotated[str | None, Field(description="Only this scope."), ScopeId()] = None
    since: Annotated[
        str | None, Field(description="Only from this time on: 2026-11-01, 2026-11-01T08:30Z, or 3d, 12h, 30m.")
    ] = None
    query: Annotated[
        str | None,
        Field(
            description='Words, "text in quotes", and terms such as op:file.read ok:false client:x approved:terminal.'
        ),
    ] = None
    limit: Annotated[int, Field(ge=1, le=MAX_EVENTS, description="Rows to show at most."), Named("--limit", "-n")] = 50


class HistoryView(Model):
    """One view; only the fields of that view are there."""

    view: str
    machine_id: str | None
    events: list[HistoryEvent]
    next_cursor: str | None
    warnings: list[str] = []
    suggestions: list[Suggestion] = []
    summary: HistorySummary | None = None
    sessions: list[HistoryGroup] = []
    scopes: list[HistoryGroup] = []
    processes: list[HistoryGroup] = []
    codex_sessions: list[HistoryGroup] = []
    connections: list[HistoryGroup] = []
    grouped_events: int = 0
    templates: list[ReplayTemplate] = []
    bundle: dict[str, Any] | None = None
    valid: bool | None = None
    records: int | None = None
    begins_at: int | None = None
    kept: int | None = None
    first_bad: int | None = None
    problem: str | None = None
    operation_id: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """The object as the view answered it."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


@owner_operation(
    "history.list",
    effect=Effect.OBSERVE,
    where="terminal",
    is_derived=False,
    deadline_s=None,
    examples=[Example("The newest operations of every client.", {"input": {"limit": 3}})],
)
async def history_list(ctx: Context, input: ListInput = ListInput()) -> HistoryView:
    """Show who did what on this computer: every client, every scope, the newest first."""
    from computer_linker.audit.history import HistoryFolder

    folder = ctx.services.home / "audit"
    if not HistoryFolder.exists(folder):
        raise NotFound("there is no history yet", hint="computer-linker start FOLDER begins one")
    config = ctx.services.config if input.view == "debug_bundle" else None
    return HistoryView.from_wire(await to_thread.run_sync(_answer, HistoryFolder(folder), input, config))


def query_of(query: str | None, since: str | None) -> str | None:
    """The query with the time as one of its terms."""
    from computer_linker.audit.prune import time_of

    terms = [query or ""] + ([f"since:{time_of(since)}"] if since else [])
    return " ".join(terms).strip() or None


def _answer(history: Any, input: ListInput, config: Any) -> dict[str, Any]:
    """The view, as many pages of events as the limit takes."""
    from computer_linker.audit.views import Question, answer_now
    from computer_linker.registry.catalog import needs_of

    query = query_of(input.query, input.since)
    asked = Question(input.view, None, input.scope, input.limit, query, needs_of=needs_of)
    found = answer_now(history, asked, config)
    page = found
    while input.view in ("last", "timeline", "failed_replay") and page["nextCursor"] is not None:
        missing = input.limit - len(found["events"])
        if missing <= 0:
            break
        page = answer_now(history, replace(asked, limit=missing, cursor=page["nextCursor"]))
        for name in ("events", "templates"):
            if name in found:
                found[name] += page[name]
        found["nextCursor"] = page["nextCursor"]
    return found
