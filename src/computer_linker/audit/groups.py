"""Sessions and connections: the newest events, grouped."""

from typing import Any

from computer_linker.audit.index import Index
from computer_linker.audit.query import Filter

NEWEST = 20_000
"""Groups are made of this many events at most, so that a long history answers as fast as a short one."""
MAX_GROUPS = 200


def answer(index: Index, found: Filter, view: str) -> dict[str, Any]:
    """The groups, the most recently used first. Words in the query narrow the events, not the groups."""
    column = "session" if view == "sessions" else "connection"
    if found.nothing:
        return {view: [], "groupedEvents": 0}
    conditions = " AND ".join(found.where) or "1"
    newest = f"SELECT * FROM events WHERE {conditions} ORDER BY number DESC LIMIT {NEWEST:d}"  # noqa: S608 - our words
    ask = (
        f"SELECT {column}, MIN(at), MAX(at), COUNT(*), SUM(ok = 0), SUM(ok IS NULL), MAX(client), MAX(principal),"  # noqa: S608
        f" GROUP_CONCAT(DISTINCT scope), GROUP_CONCAT(DISTINCT op), GROUP_CONCAT(DISTINCT session)"
        f" FROM ({newest}) GROUP BY {column} ORDER BY MAX(number) DESC LIMIT {MAX_GROUPS:d}"
    )
    with index.reading() as database:
        rows = database.execute(ask, found.values).fetchall()
    return {view: [_group(column, row) for row in rows], "groupedEvents": sum(row[3] for row in rows)}


def _group(column: str, row: tuple[Any, ...]) -> dict[str, Any]:
    told: dict[str, Any] = {
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
        told["sessions"] = sorted(row[10].split(","))[:50]
    return told
