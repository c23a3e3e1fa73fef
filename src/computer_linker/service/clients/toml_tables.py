"""Settings in TOML: one table of servers is put in or taken out, every other line stays as it is."""

import json
import re
import tomllib
from typing import Any

from computer_linker.service.clients.faults import CannotEdit

_HEADER = re.compile(r"^\s*\[")


class Toml:
    """The document language of Codex."""

    def get(self, text: str, path: tuple[str, ...]) -> Any:
        """The table there; None when there is none."""
        value: Any = _parse(text)
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def put(self, text: str, path: tuple[str, ...], value: dict[str, Any]) -> str:
        """The text with this table at its end, an older one of the same name taken out."""
        rest = self.drop(text, path)
        gap = "" if not rest.strip() else "\n" if rest.endswith("\n") else "\n\n"
        made = rest + gap + "\n".join(_table(path, value)) + "\n"
        wanted = _parse(rest)
        inner = wanted
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise CannotEdit(f"`{name}` is not a table")
        inner[path[-1]] = value
        return _checked(made, wanted)

    def drop(self, text: str, path: tuple[str, ...]) -> str:
        """The text without that table and the tables below it."""
        wanted = _parse(text)
        inner = wanted
        for name in path[:-1]:
            if not isinstance(inner.get(name), dict):
                return text
            inner = inner[name]
        if inner.pop(path[-1], None) is None:
            return text
        kept, inside = [], False
        for line in text.splitlines(keepends=True):
            if _HEADER.match(line):
                inside = _leads_to(line, path)
            if not inside:
                kept.append(line)
        made = "".join(kept)
        if made != text and made.endswith("\n\n"):
            made = made[:-1]
        return _checked(made, _pruned(wanted, path[:-1], _parse_or_none(made)))


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit(f"it is not TOML: {error}") from None


def _parse_or_none(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _checked(made: str, wanted: dict[str, Any]) -> str:
    """Lines were chosen by how they begin; a file in which that misleads (a table inline, text over lines) is left alone."""
    if _parse_or_none(made) != wanted:
        raise CannotEdit("its table of servers is written in a form that cannot be changed line by line")
    return made


def _pruned(wanted: dict[str, Any], containers: tuple[str, ...], made: dict[str, Any] | None) -> dict[str, Any]:
    """A table that existed only through ours goes with it."""
    inner = wanted
    for name in containers:
        if inner.get(name) == {} and made is not None and name not in made:
            del inner[name]
            break
        inner = inner[name]
    return wanted


def _leads_to(line: str, path: tuple[str, ...]) -> bool:
    """True for the header of this table or of one inside it."""
    header = line.strip()
    try:
        value: Any = tomllib.loads(header)
    except tomllib.TOMLDecodeError:
        return False
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def _table(path: tuple[str, ...], value: dict[str, Any]) -> list[str]:
    lines = [f"[{'.'.join(_key(name) for name in path)}]"]
    tables = {name: inner for name, inner in value.items() if isinstance(inner, dict)}
    lines += [f"{_key(name)} = {_literal(inner)}" for name, inner in value.items() if name not in tables]
    for name, inner in tables.items():
        lines += ["", *_table((*path, name), inner)]
    return lines


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _literal(name)


def _literal(value: Any) -> str:
    # A JSON string without surrogates, a JSON list and a JSON boolean are all TOML too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
