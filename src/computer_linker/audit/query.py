"""The query language of the history: text, "quoted text", and terms such as `op:file.read ok:false since:2026-11-01`.

A term without a value and one that is not known are refused; any other text is a query. The full-text index keeps no
positions, so it narrows by whole tokens, and what holds other signs (a path, a phrase, a name with an underscore) is then
looked for in the event's text as it is.
"""

import re
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from computer_linker.errors import InvalidRequest

MAX_QUERY = 1000
MAX_WORDS = 16
_COLUMNS = ("scope", "client", "session", "connection", "principal", "code", "id", "approved-by", "approved", "handle")
TERMS = (*_COLUMNS, "op", "ok", "since", "until")
_TERM = re.compile(rf'(?:({"|".join(TERMS)}):|([A-Za-z][A-Za-z_-]{{1,30}}):(?=[^\s:/\\\d]))?(?:"([^"]*)("?)|(\S+))')
"""A name before a colon is a term; an address (`http://…`), a drive and a port number are text."""
_WORD = re.compile(r"[A-Za-z0-9]+")
_TIME = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:T\d\d(?::\d\d(?::\d\d(?:\.\d{1,3})?)?)?Z?)?)?)?\Z")


@dataclass(frozen=True, slots=True)
class Visible:
    """What a caller other than the owner may see: its own events of some scopes, all events of others."""

    principal: str
    """Compared with what `redact.label` makes of a principal."""
    own: frozenset[str]
    everybodys: frozenset[str] = frozenset()

    @property
    def scopes(self) -> frozenset[str]:
        return self.own | self.everybodys


@dataclass(slots=True)
class Filter:
    """Conditions in SQL with their values; `words` is for the full-text index.

    A condition may use `holds(text, part)`, which `Index.reading` defines.
    """

    where: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    nothing: bool = False
    """True when no event can fit."""
    reader: str | None = None
    """Who reads the result; None is the owner."""

    def add(self, condition: str, *values: Any) -> None:
        self.where.append(condition)
        self.values.extend(values)


def parse(query: str | None) -> Filter:
    """Parse a query. Tokens of three letters and more match as prefixes."""
    found = Filter()
    if query is None or not query.strip():
        return found
    if len(query) > MAX_QUERY:
        raise InvalidRequest(f"A history query has at most {MAX_QUERY} characters.")
    for name, unknown, in_quotes, closed, bare in _TERM.findall(query):
        # Any text is a query: a quote that is not closed begins a text, and one that stands alone is a text.
        value = in_quotes or bare or ("" if closed or name else '"')
        empty = name if name and not value else bare.removesuffix(":") if bare.endswith(":") else ""
        if empty in TERMS:
            raise InvalidRequest(
                f"`{empty}:` in this history query has no value: write it without a space, as in {empty}:VALUE.",
                term=empty,
            )
        if unknown:
            raise InvalidRequest(
                f"A history query has no term `{unknown}:`. The terms are {', '.join(TERMS)}; text with a colon goes in quotes.",
                terms=list(TERMS),
            )
        if name:
            _term(found, name, value)
        elif value.strip():
            _text(found, value.strip())
    return found


def _text(found: Filter, value: str) -> None:
    """Tokens of three letters and more match as prefixes; a shorter prefix would match too many."""
    words = _WORD.findall(value)
    is_plain = words == [value]
    if value.isascii() and words:
        # Beyond ASCII the index divides words by tables of its own, so there the text itself is searched.
        *whole, last = words
        needed = [f'"{word}"' for word in whole]
        if len(last) > 2:
            needed.append(f'"{last}"*')
        elif is_plain:
            needed.append(f'"{last}"')
        found.words += needed[: max(0, MAX_WORDS - len(found.words))]
    if not is_plain:
        found.add("holds(events.text, ?)", value.casefold())


def define_holds(database: sqlite3.Connection) -> None:
    """Define `holds(text, part)` for the conditions of a filter: whether the text has this part, in any case of letters."""
    database.create_function("holds", 2, _holds, deterministic=True)


def _holds(text: str, part: str) -> bool:
    return part in text.casefold()


def within(found: Filter, visible: Visible | None, scope: str | None) -> Filter:
    """Restrict the filter to what this caller may see; None is the owner, who sees all."""
    if scope is not None:
        found.add("scope = ?", scope)
    if visible is None:
        return found
    found.reader = visible.principal
    own, everybodys = sorted(visible.own - visible.everybodys), sorted(visible.everybodys)
    parts = [f"scope IN ({_marks(everybodys)})"] if everybodys else []
    if own:
        parts.append(f"(principal = ? AND scope IN ({_marks(own)}))")
    mine = [visible.principal, *own] if own else []
    found.add(f"({' OR '.join(parts) or '0'})", *everybodys, *mine)
    found.nothing = found.nothing or not parts or (scope is not None and scope not in visible.scopes)
    return found


def _marks(values: list[str]) -> str:
    return ",".join("?" * len(values))


def _term(found: Filter, name: str, value: str) -> None:
    if name == "client":
        # A client calls itself NAME/VERSION: its name alone finds every version, and a star any end.
        start = value.removesuffix("*")
        begins = start if value.endswith("*") else f"{value}/"
        found.add("(client = ? OR substr(client, 1, ?) = ?)", value, len(begins), begins)
    elif name in _COLUMNS:
        found.add(f"{name.replace('-', '_')} = ?", value)
    elif name == "op":
        family = value.removesuffix("*")
        if family.endswith("."):
            found.add("op >= ? AND op < ?", family, family[:-1] + "/")
        else:
            found.add("op = ?", value)
    elif name == "ok":
        if value not in ("true", "false"):
            raise InvalidRequest("In a history query, `ok:` is true or false.")
        found.add("ok = ?", value == "true")
    else:
        if not _TIME.match(value):
            raise InvalidRequest(
                f"In a history query, `{name}:` is a time such as 2026-11-01 or 2026-11-01T08:30Z.",
                hint="the option --since also takes 30m, 12h or 3d: so long ago",
            )
        found.add("at >= ?" if name == "since" else "at < ?", value.removesuffix("Z"))
