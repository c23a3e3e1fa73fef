"""The views of the history: one JSON object each, the same for every surface."""

import sqlite3
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import anyio.to_thread

from computer_linker.audit import bundle, replay
from computer_linker.audit.faults import AuditUnavailable
from computer_linker.audit.history import History
from computer_linker.audit.index import Index
from computer_linker.audit.pages import Page, page
from computer_linker.audit.query import Filter, Visible, parse, within
from computer_linker.audit.redact import label
from computer_linker.audit.verify import verify
from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest

NEWEST = 20_000
"""Groups are made of this many events at most, so that the time does not grow with the history."""
MAX_GROUPS = 200


def grouped(index: Index, found: Filter, view: str) -> dict[str, Any]:
    """The groups, the most recently used first. Words in the query narrow the events, not the groups."""
    column = "session" if view == "sessions" else "connection"
    if found.nothing:
        return {view: [], "groupedEvents": 0}
    conditions = " AND ".join(found.where) or "1"
    newest = f"SELECT * FROM events WHERE {conditions} ORDER BY number DESC LIMIT {NEWEST:d}"  # noqa: S608 - constant text
    ask = (
        f"SELECT {column}, MIN(at), MAX(at), COUNT(*), SUM(ok = 0), SUM(ok IS NULL), MAX(client), MAX(principal),"  # noqa: S608
        f" GROUP_CONCAT(DISTINCT scope), GROUP_CONCAT(DISTINCT op), GROUP_CONCAT(DISTINCT session)"
        f" FROM ({newest}) GROUP BY {column} ORDER BY MAX(number) DESC LIMIT {MAX_GROUPS:d}"
    )
    with index.reading() as database:
        rows = database.execute(ask, found.values).fetchall()
    return {view: [_group(column, row) for row in rows], "groupedEvents": sum(row[3] for row in rows)}


def _group(column: str, row: tuple[Any, ...]) -> dict[str, Any]:
    group: dict[str, Any] = {
        column: row[0],
        "firstAt": row[1],
        "lastAt": row[2],
        "events": row[3],
        "failed": row[4] or 0,
        "unfinished": row[5],
        "client": row[6],
        "principal": row[7],
        "scopes": sorted(row[8].split(",")),
        "operations": sorted(row[9].split(","))[:50],
    }
    if column == "connection":
        group["sessions"] = sorted(row[10].split(","))[:50]
    return group


View = Literal["last", "timeline", "sessions", "connections", "failed_replay", "debug_bundle", "verify"]
VIEWS: tuple[str, ...] = get_args(View)
DEFAULT_LIMIT = 50
_DAMAGED = "The history was changed outside the service; `computer-linker history verify` tells the owner where."


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `visible` is what the caller's `history:read` and `history:all` give; None is the owner, who sees all."""

    view: str
    visible: Visible | None
    scope: str | None = None
    limit: int = DEFAULT_LIMIT
    query: str | None = None
    cursor: str | None = None


async def answer(
    store: History,
    *,
    view: str,
    visible: Visible | None,
    scope: str | None = None,
    limit: int = DEFAULT_LIMIT,
    query: str | None = None,
    cursor: str | None = None,
    config: Config | None = None,
) -> dict[str, Any]:
    """Answer `{view, events, nextCursor, ...}` over what the caller may see; None is the owner, who sees all.

    Reads in a worker thread.
    """
    question = Question(view, visible, scope, limit, query, cursor)
    return await anyio.to_thread.run_sync(partial(answer_now, store, question, config))


def answer_now(store: History, question: Question, config: Config | None = None) -> dict[str, Any]:
    """Answer as above, blocking: for the command line."""
    if question.view not in VIEWS:
        raise InvalidRequest(f"There is no history view {question.view[:40]!r}.", views=list(VIEWS))
    try:
        return _answer(store, question, config)
    except sqlite3.OperationalError as error:
        raise AuditUnavailable(
            f"The history's index cannot be used now: {error}. The history itself is safe."
        ) from error
    except sqlite3.DatabaseError:
        # The index is damaged; all its data is in the journal.
        store.index.rebuild()
        return _answer(store, question, config)


def _answer(store: History, question: Question, config: Config | None) -> dict[str, Any]:
    store.index.catch_up()
    match question.view:
        case "verify":
            found = _verified(store, question)
        case "timeline":
            found = _to_object(_page(store, question, newest_first=False))
        case "failed_replay":
            found = replay.answer(_page(store, question, newest_first=True, only_failed=True))
        case "sessions" | "connections":
            listed = _page(store, question, newest_first=True)
            found = _to_object(listed) | grouped(store.index, _filter(store, question), question.view)
        case "debug_bundle":
            recent = _page(store, question, newest_first=True)
            every = _filter(store, Question(question.view, question.visible, question.scope))
            found = _to_object(recent) | {"bundle": bundle.build(store, config, question.visible, every)}
        case _:
            listed = _page(store, question, newest_first=True)
            found = _to_object(listed) | {"suggestions": replay.suggestions(listed.events)}
    if store.index.broken is not None:
        broken = store.index.broken
        where = f"The history stops at record {broken.number}: {broken.problem}. Ask for view verify."
        found["warnings"] = [where if question.visible is None else _DAMAGED]
    return {"view": question.view, **found}


def _page(store: History, question: Question, *, newest_first: bool, only_failed: bool = False) -> Page:
    found = _filter(store, question)
    if only_failed:
        found.add("ok = 0")
    return page(
        store.index,
        found,
        newest_first=newest_first,
        limit=question.limit,
        cursor=question.cursor,
        running=store.is_running,
    )


def _filter(store: History, question: Question) -> Filter:
    visible = question.visible
    if visible is not None:
        visible = replace(visible, principal=label(visible.principal, store.key))
    return within(parse(question.query), visible, question.scope)


def _to_object(found: Page) -> dict[str, Any]:
    return {"events": found.events, "nextCursor": found.next_cursor}


def _verified(store: History, question: Question) -> dict[str, Any]:
    result = asdict(verify(store.folder, store.key, store.index))
    if question.visible is not None:
        # The chain holds the events of all principals: how long it is and which operation was touched are for the owner.
        result = dict.fromkeys(result) | {"ok": result["ok"], "problem": None if result["ok"] else _DAMAGED}
    wire = {"ok": "valid", "begins_at": "beginsAt", "first_bad": "firstBad", "operation_id": "operationId"}
    return {"events": [], "nextCursor": None} | {wire.get(name, name): value for name, value in result.items()}
