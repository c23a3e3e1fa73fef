"""Edits one member of a JSON settings file, with or without comments; every other byte stays as it is."""

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/|\ufeff", re.DOTALL)
_TRAILING_COMMA = re.compile(_STRING + r"|(?<![\[{,:\s])\s*,(?=\s*[}\]])", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Member:
    """One `"name": value` of an object: the name's first quote, and the value with its first and last position."""

    start: int
    value: Any
    value_start: int
    end: int


class Jsonc:
    """The editor for JSON files, which most clients use."""

    def get(self, text: str, path: tuple[str, ...]) -> Any:
        """Return the value at the path; None if it is absent."""
        found = _Document(text).find(path) if _blanked(_COMMENT, text).strip() else None
        return None if found is None else found.value

    def put(self, text: str, path: tuple[str, ...], value: Any) -> str:
        """Return the text with this value set; missing parent objects are created."""
        if not _blanked(_COMMENT, text).strip():
            # A comment without a line end would include what follows it.
            gap = "" if not text or text.endswith("\n") else "\n"
            return text + gap + json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
        document = _Document(text)
        found = document.find(path)
        if found is not None:
            return text[: found.value_start] + _written(text, value, len(path)) + text[found.end :]
        depth = max(depth for depth in range(len(path)) if document.find(path[:depth]) is not None)
        parent = document.need(path[:depth])
        if not isinstance(parent.value, dict):
            raise CannotEdit(f"`{'.'.join(path[:depth])}` is not an object")
        return _insert(text, document, parent, depth, path[depth], _nested(path[depth + 1 :], value))

    def drop(self, text: str, path: tuple[str, ...]) -> str:
        """Return the text without that member, and without parent objects that become empty by this."""
        if self.get(text, path) is None:
            return text
        document = _Document(text)
        depth = len(path) - 1
        while depth and len(document.need(path[:depth]).value) == 1:
            depth -= 1
        return _cut(text, document, document.need(path[:depth]), path[depth])


class _Document:
    """A parsed file. `plain` is the same text as strict JSON: comments and trailing commas are spaces there."""

    def __init__(self, text: str) -> None:
        self.plain = _blanked(_TRAILING_COMMA, _blanked(_COMMENT, text))
        try:
            value = json.loads(self.plain, object_pairs_hook=_unique, parse_constant=_refused)
        except json.JSONDecodeError as error:
            raise CannotEdit(f"it is not JSON at line {error.lineno}: {error.msg}") from None
        except RecursionError:
            raise CannotEdit("it is nested too deeply") from None
        if not isinstance(value, dict):
            raise CannotEdit("it is not a JSON object")
        start = _skip(self.plain, 0)
        self._root = Member(start, value, start, len(self.plain.rstrip()))

    def find(self, path: tuple[str, ...]) -> Member | None:
        found = self._root
        for name in path:
            if not isinstance(found.value, dict) or name not in found.value:
                return None
            found = self.members(found)[name]
        return found

    def need(self, path: tuple[str, ...]) -> Member:
        found = self.find(path)
        assert found is not None
        return found

    def members(self, parent: Member) -> dict[str, Member]:
        """Return the members of an object in the order of the text."""
        found: dict[str, Member] = {}
        decode = json.JSONDecoder().raw_decode
        at = _skip(self.plain, parent.value_start + 1)
        while self.plain[at] != "}":
            name, colon = decode(self.plain, at)
            start = _skip(self.plain, _skip(self.plain, colon) + 1)
            value, end = decode(self.plain, start)
            found[name] = Member(at, value, start, end)
            at = _skip(self.plain, end)
            at = _skip(self.plain, at + 1) if self.plain[at] == "," else at
        return found


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Replace what the pattern matches by spaces of the same length; strings and line ends stay."""
    return pattern.sub(lambda m: m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0]), text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise CannotEdit("an object in it has two members of one name")
    return made


def _refused(constant: str) -> Any:
    raise CannotEdit(f"{constant} is not JSON")


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found else at


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _insert(text: str, document: _Document, parent: Member, depth: int, name: str, value: Any) -> str:
    made = f"{json.dumps(name)}: {_written(text, value, depth + 1)}"
    unit = _indent_of(text)
    line = " " if unit is None else _newline(text) + unit * (depth + 1)
    if parent.value:
        last = max(member.end for member in document.members(parent).values())
        return text[:last] + "," + line + made + text[last:]
    line, closing = ("", "") if unit is None else (line, _newline(text) + unit * depth)
    # An empty object holds nothing but space and comments, which stay in front.
    kept = text[: parent.end - 1].rstrip()
    return kept + line + made + closing + text[parent.end - 1 :]


def _cut(text: str, document: _Document, parent: Member, name: str) -> str:
    members = list(document.members(parent).values())
    names = list(parent.value)
    index = names.index(name)
    if index:
        # From the end of the member before, with its comma, to our own end.
        return text[: members[index - 1].end] + text[members[index].end :]
    if len(members) > 1:
        return text[: members[0].start] + text[members[1].start :]
    end = members[0].end
    comma = _skip(_blanked(_COMMENT, text), end)
    tail = text[comma + 1 if text[comma] == "," else end : parent.end - 1]
    return text[: members[0].start].rstrip() + (tail.strip() and tail) + text[parent.end - 1 :]


def _written(text: str, value: Any, depth: int) -> str:
    unit = _indent_of(text)
    if unit is None:
        return json.dumps(value, ensure_ascii=False)
    made = json.dumps(value, indent=unit, ensure_ascii=False)
    return made.replace("\n", _newline(text) + unit * depth)


def _indent_of(text: str) -> str | None:
    """One step of indentation as the file has it; None for a file on one line."""
    found = re.search(r"\n([ \t]+)\S", text)
    if found is not None:
        return found.group(1)
    return "  " if "\n" in text.strip() or len(_blanked(_COMMENT, text).strip()) <= 2 else None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# Why a client's settings are left alone.


class CannotEdit(Exception):
    """The file is not one we can change safely; the message says why, and nothing was written."""


# Edits one table of a TOML settings file; comments, order and formatting of everything else stay.


class Toml:
    """The editor for TOML files."""

    def get(self, text: str, path: tuple[str, ...]) -> Any:
        """Return the table at the path; None if it is absent."""
        value: Any = _parse(text)
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def put(self, text: str, path: tuple[str, ...], value: Any) -> str:
        """Return the text with this table at its end; an older one of the same name is removed."""
        import tomlkit

        rest = self.drop(text, path)
        wanted, added = _parse(rest), value
        for name in reversed(path):
            added = {name: added}
        _container(wanted, path)[path[-1]] = value
        gap = "" if not rest.strip() else "\n" if rest.endswith("\n") else "\n\n"
        return _checked(rest + gap + tomlkit.dumps(added), wanted)

    def drop(self, text: str, path: tuple[str, ...]) -> str:
        """Return the text without that table, and without a parent that no header of its own names."""
        import tomlkit

        if self.get(text, path) is None:
            return text
        try:
            wanted, document = _parse(text), tomlkit.parse(text)
        except tomlkit.exceptions.TOMLKitError as error:
            raise CannotEdit(f"it cannot be changed in place: {error}") from None
        del _container(wanted, path)[path[-1]]
        del _container(document, path)[path[-1]]
        made = tomlkit.dumps(document)
        # The blank line in front of a table that was appended.
        made = made[:-1] if made.endswith("\n\n") else made
        if wanted[path[0]] == {} and path[0] not in _parse(made):
            del wanted[path[0]]
        return _checked(made, wanted)


def _container(document: Any, path: tuple[str, ...]) -> Any:
    for name in path[:-1]:
        document = document.setdefault(name, {})
        if not isinstance(document, dict):
            raise CannotEdit(f"`{name}` is not a table")
    return document


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit(f"it is not TOML: {error}") from None


def _checked(made: str, wanted: dict[str, Any]) -> str:
    """Return the text if a second parser reads exactly what is wanted; an inline table, for one, cannot be appended to."""
    try:
        if tomllib.loads(made) == wanted:
            return made
    except tomllib.TOMLDecodeError:
        pass
    raise CannotEdit("its table of servers is written in a form that cannot be changed in place")
