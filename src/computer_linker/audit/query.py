"""The query language of the history: words, and terms such as `op:file.read ok:false since:2026-11-01`."""

import re
from dataclasses import dataclass, field
from typing import Any

from computer_linker.errors import InvalidRequest

MAX_QUERY = 1000
_COLUMNS = ("scope", "client", "session", "connection", "principal", "code", "id", "approved-by", "approved")
_TERM = re.compile(rf'(?:({"|".join(_COLUMNS)}|op|ok|since|until):)?(?:"([^"]*)"?|(\S+))')
_TOKEN = re.compile(r"\w+")
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
    """Conditions in SQL with their values; `words` is for the full-text index."""

    where: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    words: str | None = None
    nothing: bool = False
    """True when no event can fit."""
    reader: str | None = None
    """Who reads the result; None is the owner."""

    def add(self, condition: str, *values: Any) -> None:
        self.where.append(condition)
        self.values.extend(values)


def parse(query: str | None) -> Filter:
    """Parse a query. Words of three letters and more match prefixes of words."""
    found = Filter()
    if query is None or not query.strip():
        return found
    if len(query) > MAX_QUERY:
        raise InvalidRequest(f"A history query has at most {MAX_QUERY} characters.")
    tokens: list[str] = []
    for name, in_quotes, bare in _TERM.findall(query):
        value = in_quotes or bare
        if name:
            _term(found, name, value)
        else:
            words = _TOKEN.findall(value)
            found.nothing = found.nothing or not words
            tokens += words
    if tokens:
        # A prefix of one or two letters would match too many words.
        found.words = " ".join(f'"{token}"*' if len(token) > 2 else f'"{token}"' for token in tokens[:16])
    return found


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
    if name in _COLUMNS:
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
            raise InvalidRequest(f"In a history query, `{name}:` is a time such as 2026-11-01 or 2026-11-01T08:30Z.")
        found.add("at >= ?" if name == "since" else "at < ?", value.removesuffix("Z"))
