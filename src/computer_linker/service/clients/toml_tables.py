"""Edits one table of a TOML settings file; comments, order and formatting of everything else stay."""

import tomllib
from typing import Any

from computer_linker.service.clients.faults import CannotEdit


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
