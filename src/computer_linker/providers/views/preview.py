"""What a view would change, line by line for the person who decides: every byte visible, and what is left out."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from computer_linker.changes.difference import MAX_BYTES, MAX_SHOWN, State, diff_lines, digests
from computer_linker.errors import LimitExceeded
from computer_linker.model.paths import RootedPath
from computer_linker.model.times import shown_ns
from computer_linker.policy.visible_text import escaped
from computer_linker.providers.views.changes import ViewChange
from computer_linker.providers.views.merging import MergedText
from computer_linker.providers.views.names import Entry, Parts, digest_below
from computer_linker.providers.views.reading import DIFF_S, ViewReader, content_of, detail_of, is_hidden, path_of

_SHOWN_LINES = 2000
_DIGESTED = 256 << 20
"""Bytes of all files of a request whose digest is shown."""


def previewed(
    reader: ViewReader,
    changes: list[tuple[RootedPath, ViewChange]],
    merges: Mapping[RootedPath, MergedText],
    *,
    is_asked: bool = False,
) -> list[str]:
    """Each change: its names, mode and content.

    Raises LimitExceeded where a person `is_asked` about more than can be shown.
    """
    with reader.opened() as roots:
        places = {each.root.root: (each.upper, each.lower) for each in roots}
        shown = _Shown()
        for number, (path, change) in enumerate(changes):
            if shown.is_full and len(shown.lines) >= _SHOWN_LINES:
                left = f"{len(changes) - number} more changes"
                if is_asked:
                    raise LimitExceeded(f"{left} cannot be shown at once. Keep fewer paths at a time.")
                return [*shown.lines, f"… {left}, which are not shown here"]
            shown.add(path, change, *places[path.root], merges.get(path))
    return shown.lines


@dataclass(slots=True)
class _Shown:
    """The lines so far, with what is left of the time and of the bytes to be digested."""

    lines: list[str] = field(default_factory=list)
    is_full: bool = False
    """So much is shown that the rest is shown by digests."""
    _size: int = 0
    _room: int = _DIGESTED
    _until: float = field(default_factory=lambda: time.monotonic() + DIFF_S)

    def add(self, path: RootedPath, change: ViewChange, upper: int, lower: int, text: MergedText | None) -> None:
        content = self._content(path, change, upper, lower, text)
        headline = _headline(path, change, is_merged=text is not None, is_bare=not content)
        new = [headline, *_attribute_lines(change, upper, lower), *content]
        self.lines += new
        self._size += sum(map(len, new))
        self.is_full = self._size > MAX_SHOWN

    def _content(
        self, path: RootedPath, change: ViewChange, upper: int, lower: int, text: MergedText | None
    ) -> list[str]:
        before, after = change.before, change.after
        if after is None or after.kind == "directory":
            return []
        if change.is_unreadable:
            return ["  its mode does not let this user read it"]
        if is_hidden(path):
            return [f"  {after.size} bytes; a name that usually holds a secret, so its content is not shown"]
        if before is not None and before.kind == "directory":
            before = None
        if self.is_full or max(after.size, before.size if before is not None else 0) > MAX_BYTES:
            was = None if before is None else self._state(lower, change.source or change.parts, before)
            now = self._state(upper, change.parts, after) if text is None else State.of(text.content)
            return [] if was == now and now.sha256 is not None else _without_name(path, digests(path.shown, was, now))
        old = None if before is None else content_of(lower, change.source or change.parts, before)
        new = content_of(upper, change.parts, after) if text is None else text.content
        if (old or b"") == new:
            return []
        return _without_name(path, diff_lines(path.shown, old, new, until=self._until, is_whole=True))

    def _state(self, folder: int, parts: Parts, entry: Entry) -> State:
        """The size and digest of a file; without the digest where that would take long."""
        if entry.kind != "file":
            return State.of(content_of(folder, parts, entry))
        if entry.size > self._room:
            return State(entry.size, None)
        began = time.monotonic()
        self._room -= entry.size
        found = State(entry.size, digest_below(folder, parts))
        # A large file takes no time from the comparison of others.
        self._until += time.monotonic() - began
        return found


def _without_name(path: RootedPath, lines: list[str]) -> list[str]:
    """The headline has the name already."""
    return [f"  {lines[0].removeprefix(f'{escaped(path.shown)}: ')}", *lines[1:]]


def _attribute_lines(change: ViewChange, upper: int, lower: int) -> list[str]:
    if change.is_unreadable or change.after is None or change.after.kind not in ("file", "directory"):
        return []
    found = detail_of(change, upper, lower).attributes
    return [escaped(f"  extended attributes: {', '.join(found)}")] if found else []


def _headline(path: RootedPath, change: ViewChange, *, is_merged: bool, is_bare: bool) -> str:
    former = "" if change.source is None else f" from {path_of(path, change.source).shown}"
    before, after = change.before, change.after
    is_new_mode = after is not None and (before is None or before.mode != after.mode or before.kind != after.kind)
    mode = f" ({after.kind}, mode {after.mode:04o})" if after is not None and is_new_mode else ""
    both = ", merged with what changed in the folder since" if is_merged else ""
    is_set = before is not None and after is not None and before.modified_ns != after.modified_ns
    time_set = f" (time {shown_ns(after.modified_ns)})" if is_bare and is_set and after is not None else ""
    return escaped(f"{change.action} {path.shown}{former}{_lost(change)}{mode}{time_set}{both}{_other_names(change)}")


def _lost(change: ViewChange) -> str:
    """What goes with a name that is removed, or whose folder a file replaces."""
    before = change.before
    if before is None or (
        change.after is not None and (before.kind != "directory" or change.after.kind == "directory")
    ):
        return ""
    what = f"{before.size} bytes" if before.kind == "file" else before.kind
    inside = f" with {change.names} name{'' if change.names == 1 else 's'} in it" if before.kind == "directory" else ""
    return f" ({what}{inside})" if change.after is None else f" (a {what}{inside} goes)"


def _other_names(change: ViewChange) -> str:
    """The other names of a file that changes: a view does not know them, and they stay as they are."""
    before = change.before
    if before is None or change.after is None or before.links == 1:
        return ""
    return f"; other names of it (hard links) keep the old content: {before.links - 1}"
