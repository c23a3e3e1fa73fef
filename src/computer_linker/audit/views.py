"""The views of the history: one JSON object each, the same for every surface."""

import sqlite3
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import anyio.to_thread

from computer_linker.audit import bundle, groups, replay
from computer_linker.audit.faults import AuditUnavailable
from computer_linker.audit.history import History
from computer_linker.audit.pages import Page, machine_of, page
from computer_linker.audit.query import Filter, Visible, parse, within
from computer_linker.audit.redact import label
from computer_linker.audit.verify import verify
from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest
from computer_linker.model.history import VIEWS

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
    needs_of: replay.NeedsOf = replay.unknown_needs
    """For `failed_replay`: what an operation needs to be sent again."""


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
    needs_of: replay.NeedsOf = replay.unknown_needs,
) -> dict[str, Any]:
    """Answer `{view, events, nextCursor, ...}` over what the caller may see; None is the owner, who sees all.

    Reads in a worker thread.
    """
    question = Question(view, visible, scope, limit, query, cursor, needs_of)
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
            found = replay.answer(_page(store, question, newest_first=True, only_failed=True), question.needs_of)
        case "sessions" | "connections":
            group = groups.sessions if question.view == "sessions" else groups.connections
            listed = _page(store, question, newest_first=True)
            found = _to_object(listed) | group(store.index, _filter(store, question), question.limit)
        case "summary":
            listed = _page(store, question, newest_first=True)
            found = _to_object(listed) | {"summary": groups.summary(store.index, _filter(store, question))}
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
    return {"view": question.view, "machineId": machine_of(store.folder), **found}


def _page(store: History, question: Question, *, newest_first: bool, only_failed: bool = False) -> Page:
    found = _filter(store, question)
    if only_failed:
        found.add("ok = 0")
    listed = page(
        store.index,
        found,
        newest_first=newest_first,
        limit=question.limit,
        cursor=question.cursor,
        running=store.is_running,
    )
    # The journal has an observation when it ends and a change when it begins. A page is shown by the time of the start, which
    # its rows have; pages follow each other as the journal does, so that none is skipped.
    by_start = sorted(listed.events, key=lambda event: event["startedAt"], reverse=newest_first)
    return replace(listed, events=by_start)


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
