"""Groups of events: by client session, scope, process, agent session and connection; and the events in numbers."""

import json
import re
from typing import Any, cast

from computer_linker.audit.index import Index
from computer_linker.audit.query import Filter
from computer_linker.model.history import HistoryCount, HistoryGroup, HistorySummary
from computer_linker.policy.visible_text import client_label

NEWEST = 20_000
"""Groups are made of this many events at most, so that the time does not grow with the history."""
MAX_GROUPS = 200
_MAX_PARTS = 50
_MAX_COUNTS = 20
_TUNNEL = re.compile(r"http-tunnel-([a-z]+)-")
_OWNER = "\n"
"""Stands for the owner's own command line: no client's name has a line break."""
_CLIENT = "CASE WHEN principal LIKE 'cli:%' THEN char(10) ELSE client END"
_ONE_CONNECTION = "connection, principal, client"
"""One address or one credential may serve several clients: each is a connection."""


def sessions(index: Index, found: Filter, limit: int) -> dict[str, Any]:
    """The groups of the `sessions` view, the most recently used first. Words in the query narrow the events, not the groups."""
    limit = min(limit, MAX_GROUPS)
    by_session = _groups(index, found, "session", limit)
    is_agent = "handle IS NOT NULL AND handle NOT LIKE 'proc\\_%' ESCAPE '\\'"
    return {
        "sessions": [_named(group, "session", key) for key, group in by_session],
        "scopes": [_named(group, "scope", key) for key, group in _groups(index, found, "scope", limit, "scope <> ''")],
        "processes": [
            _named(group, "processId", key)
            for key, group in _groups(index, found, "handle", limit, "handle LIKE 'proc\\_%' ESCAPE '\\'")
        ],
        "codexSessions": [
            _named(group, "sessionId", key) for key, group in _groups(index, found, "handle", limit, is_agent)
        ],
        "groupedEvents": sum(group["events"] for _, group in by_session),
    }


def connections(index: Index, found: Filter, limit: int) -> dict[str, Any]:
    """The groups of the `connections` view: one for each client, with its tunnel and the request ids that it gave."""
    listed = []
    for key, group in _groups(index, found, _ONE_CONNECTION, min(limit, MAX_GROUPS)):
        tunnel = _TUNNEL.match(key)
        listed.append({**_named(group, "connection", key), "tunnel": tunnel[1] if tunnel else None})
    return {"connections": listed, "groupedEvents": sum(cast(HistoryGroup, one)["events"] for one in listed)}


def summary(index: Index, found: Filter) -> HistorySummary:
    """The newest events that fit, in numbers."""
    if found.nothing:
        return HistorySummary(
            events=0, failed=0, refused=0, unfinished=0, firstAt=None, lastAt=None, operations=[], clients=[],
            scopes=[], errors=[],
        )  # fmt: skip
    refused = "code IN ('permission_denied', 'path_out_of_scope', 'denied_by_person', 'no_answer', 'confirm_required', 'paused')"
    whole = (
        f"SELECT COUNT(*), SUM(ok = 0), SUM(COALESCE({refused}, 0)), SUM(ok IS NULL), MIN(at), MAX(at)"  # noqa: S608
        f" FROM ({_newest(found)})"
    )
    with index.reading() as database:
        row = database.execute(whole, found.values).fetchone()
        counts = {
            column: [
                HistoryCount(name=name, events=events, failed=failed or 0)
                for name, events, failed in database.execute(
                    f"SELECT {value} AS name, COUNT(*), SUM(ok = 0) FROM ({_newest(found)}) WHERE name <> ''"  # noqa: S608
                    f" GROUP BY name ORDER BY COUNT(*) DESC, name LIMIT {_MAX_COUNTS:d}",
                    found.values,
                )
            ]
            for column, value in (("op", "op"), ("client", _CLIENT), ("scope", "scope"), ("code", "code"))
        }
    return HistorySummary(
        events=row[0], failed=row[1] or 0, refused=row[2] or 0, unfinished=row[3] or 0, firstAt=row[4], lastAt=row[5],
        operations=counts["op"], clients=[_labelled(one) for one in counts["client"]], scopes=counts["scope"],
        errors=counts["code"],
    )  # fmt: skip


def _labelled(one: HistoryCount) -> HistoryCount:
    is_owner = one["name"] == _OWNER
    return HistoryCount(
        name="owner" if is_owner else client_label(one["name"]), events=one["events"], failed=one["failed"]
    )


def _newest(found: Filter, condition: str = "1") -> str:
    conditions = " AND ".join([*found.where, condition])
    return f"SELECT * FROM events WHERE {conditions} ORDER BY number DESC LIMIT {NEWEST:d}"  # noqa: S608 - constant text


def _groups(
    index: Index, found: Filter, columns: str, limit: int, condition: str = "1"
) -> list[tuple[str, HistoryGroup]]:
    if found.nothing:
        return []
    ask = (
        f"SELECT {columns.partition(',')[0]}, MIN(at), MAX(at), COUNT(*), SUM(ok = 0), SUM(ok IS NULL), MAX(client),"  # noqa: S608
        f" MAX(principal), JSON_GROUP_ARRAY(DISTINCT scope), JSON_GROUP_ARRAY(DISTINCT op), JSON_GROUP_ARRAY(DISTINCT session),"
        f" JSON_GROUP_ARRAY(DISTINCT request) FROM ({_newest(found, condition)}) GROUP BY {columns}"
        f" ORDER BY MAX(number) DESC LIMIT {max(1, limit):d}"
    )
    with index.reading() as database:
        rows = database.execute(ask, found.values).fetchall()
    return [(row[0], _group(row)) for row in rows]


def _group(row: tuple[Any, ...]) -> HistoryGroup:
    return HistoryGroup(
        firstAt=row[1],
        lastAt=row[2],
        events=row[3],
        failed=row[4] or 0,
        unfinished=row[5],
        client=row[6],
        principal=row[7],
        scopes=_parts(row[8]),
        operations=_parts(row[9]),
        sessions=_parts(row[10]),
        requests=_parts(row[11]),
    )


def _parts(listed: str) -> list[str]:
    return sorted(part for part in json.loads(listed) if part)[:_MAX_PARTS]


def _named(group: HistoryGroup, name: str, key: str) -> HistoryGroup:
    """The group with its own name first; sessions and requests are told of connections alone."""
    left_out = () if name == "connection" else ("sessions", "requests")
    return cast(HistoryGroup, {name: key} | {field: value for field, value in group.items() if field not in left_out})
