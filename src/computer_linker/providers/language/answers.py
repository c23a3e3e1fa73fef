"""What a server answers, as places and edits of a root: nothing outside it, and no name the scope's rules close."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from computer_linker.errors import ExecutionFailed, InvalidRequest, LinkError, PermissionDenied
from computer_linker.model.paths import RootedPath, split_target
from computer_linker.policy.paths import check_name
from computer_linker.providers.held import held
from computer_linker.providers.language.server import MAX_FILE, Server
from computer_linker.providers.language.text import Lines, Position, characters, position_from
from computer_linker.providers.language.uris import path_of

_MAX_TEXT = 200
_MAX_EDITED = 500
_MAX_KEPT = 256


@dataclass(frozen=True, slots=True)
class Spot:
    """One place of an answer; lines and columns from 1. `text` is empty for a file outside the root."""

    path: str
    line: int
    column: int
    text: str
    is_outside: bool = False
    rooted: RootedPath | None = None


class Places:
    """Turns the locations of one answer into spots, reading each file once."""

    def __init__(self, root: RootedPath, server: Server) -> None:
        self._root = root
        self._server = server
        self._real = server.root.rstrip("/")
        self._lines: dict[tuple[str, ...], Lines | None] = {}
        self.closed = 0
        """Places in files that this caller's scope does not open; they are left out."""

    def rooted(self, uri: str) -> RootedPath | None:
        """The path of a URI in the root; None for one outside. Raises for a name that the scope closes."""
        path = path_of(uri)
        if path is None or not path.startswith(f"{self._real}/"):
            return None
        parts = split_target(path[len(self._real) + 1 :])
        found = self._root.child(*parts)
        check_name(found, for_writing=False)
        return found

    def spots(self, locations: Iterable[Any]) -> list[Spot]:
        """The places in order, each once; what the scope closes is counted and left out. Blocking."""
        found: dict[tuple[str, int, int], Spot] = {}
        for location in locations:
            if not isinstance(location, dict):
                continue
            uri = location.get("uri") or location.get("targetUri")
            span = location.get("range") or location.get("targetSelectionRange")
            if not isinstance(uri, str) or not isinstance(span, dict):
                raise ExecutionFailed("The language server answered with a location that is none.")
            spot = self.spot(uri, position_from(span.get("start")))
            if spot is not None:
                found.setdefault((spot.path, spot.line, spot.column), spot)
        return sorted(found.values(), key=lambda spot: (spot.is_outside, spot.path, spot.line, spot.column))

    def spot(self, uri: str, at: Position) -> Spot | None:
        """One place; None for one that the scope closes or that is gone."""
        try:
            path = self.rooted(uri)
            if path is None:
                return Spot(_outside(uri), at.line + 1, at.character + 1, "", is_outside=True)
            lines = self.lines(path)
        except LinkError:
            self.closed += 1
            return None
        if lines is None or at.line >= len(lines):
            return None
        text = lines.line(at.line)
        shown = text.strip()
        shown = shown if len(shown) <= _MAX_TEXT else shown[:_MAX_TEXT] + "…"
        return Spot(path.shown, at.line + 1, characters(text, at.character) + 1, shown, rooted=path)

    def lines(self, path: RootedPath) -> Lines | None:
        """The lines of a file as it is now; None when it is gone."""
        if path.parts not in self._lines:
            self._lines[path.parts] = self._known(path.parts) or self._fresh(path)
        return self._lines[path.parts]

    def is_known(self, locations: Iterable[Any]) -> bool:
        """True when all of these places are in texts that are kept, so that nothing has to be read."""
        uris = {str(each.get("uri") or each.get("targetUri")) for each in locations if isinstance(each, dict)}
        paths = [path for uri in uris if (path := path_of(uri) or "").startswith(f"{self._real}/")]
        return all(self._known(tuple(path[len(self._real) + 1 :].split("/"))) is not None for path in paths)

    def _known(self, parts: tuple[str, ...]) -> Lines | None:
        found = self._server.lines.get(parts)
        return found if found is not None and self._server.is_unchanged(parts) else None

    def _fresh(self, path: RootedPath) -> Lines | None:
        data = _read(path)
        if data is None:
            return None
        lines, kept = Lines(data.decode("utf-8", "replace")), self._server.lines
        if self._server.is_unchanged(path.parts):
            kept[path.parts] = lines
            while len(kept) > _MAX_KEPT:
                kept.popitem(last=False)
        return lines

    def edits(self, answer: Any, writable: Callable[[str], RootedPath]) -> list[tuple[RootedPath, list[Any]]]:
        """The files of a workspace edit with their text edits. Raises for one that reaches outside or to a closed name."""
        files: dict[str, list[Any]] = {}
        answer = answer if isinstance(answer, dict) else {}
        for change in answer.get("documentChanges") or []:
            if not isinstance(change, dict) or "kind" in change:
                raise InvalidRequest("This change would create, rename or remove files, which is not done here.")
            document = change.get("textDocument")
            uri = document.get("uri") if isinstance(document, dict) else None
            files.setdefault(str(uri), []).extend(change.get("edits") or [])
        if not answer.get("documentChanges"):
            for uri, edits in (answer.get("changes") or {}).items():
                files.setdefault(str(uri), []).extend(edits)
        if len(files) > _MAX_EDITED:
            raise InvalidRequest(f"This change concerns {len(files)} files; at most {_MAX_EDITED} are changed at once.")
        found = []
        for uri, edits in files.items():
            path = self.rooted(uri)
            if path is None:
                raise PermissionDenied(
                    f"The change reaches {_outside(uri)}, which lies outside the scope. Nothing was changed.",
                    rule="outside",
                )
            if edits:
                found.append((writable(path.shown), edits))
        return sorted(found, key=lambda each: each[0].parts)


def _read(path: RootedPath) -> bytes | None:
    try:
        with held(path) as found:
            if found.is_folder:
                return None
            with open(found.fd, "rb", closefd=False) as file:
                return file.read(MAX_FILE)
    except (LinkError, OSError) as error:
        if isinstance(error, PermissionDenied):
            raise
        return None


def _outside(uri: str) -> str:
    """How a file outside the root is named: by its path, without contents."""
    path = path_of(uri)
    return os.path.normpath(path) if path is not None else uri[:200]
