"""A strict reader of unified diffs: only diff sections, regular files, bounded sizes; everything else is refused.

Text before, between or after the sections is refused too: a diff hidden in a commit message must never be applied.
"""

import re
from dataclasses import dataclass, field

from computer_linker.errors import InvalidRequest, LimitExceeded

MAX_FILES = 500
MAX_HUNKS = 10_000
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*)?\Z")
_MODES = ("100644", "100755")
_NO_NEWLINE = "\\ No newline at end of file"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Hunk:
    """Old lines and new lines, each with its line end; the last may lack one."""

    old_start: int
    old: list[str]
    new: list[str]
    additions: int
    deletions: int


@dataclass(slots=True)
class FilePatch:
    """One file's section. `old` is None for a new file, `new` for a deleted one; they differ for a rename."""

    old: str | None
    new: str | None
    hunks: list[Hunk] = field(default_factory=list)
    is_executable: bool | None = None

    @property
    def additions(self) -> int:
        return sum(hunk.additions for hunk in self.hunks)

    @property
    def deletions(self) -> int:
        return sum(hunk.deletions for hunk in self.hunks)


def parse_diff(text: str) -> list[FilePatch]:
    """The sections of a diff. Raises InvalidRequest for anything that is not exactly a unified diff."""
    return _Parser(text).run()


class _Parser:
    def __init__(self, text: str) -> None:
        # Only "\n" ends a line: other separators belong to the content.
        self.lines = text.split("\n")
        self.at = 0
        self.hunks = 0

    def run(self) -> list[FilePatch]:
        patches: list[FilePatch] = []
        while self.at < len(self.lines):
            line = self._line()
            if line == "" and all(not rest.strip("\r") for rest in self.lines[self.at :]):
                break
            if line.startswith("diff --git "):
                patches.append(self._git_section())
            elif line.startswith("--- "):
                patches.append(self._plain_section())
            else:
                raise self._refusal("is not part of a unified diff; send only the diff itself")
            if len(patches) > MAX_FILES:
                raise LimitExceeded(f"A patch may touch at most {MAX_FILES} files.", maxFiles=MAX_FILES)
        if not patches:
            raise InvalidRequest("The patch holds no diff section (`--- old`, `+++ new`, `@@ ... @@`).")
        return patches

    def _line(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def _plain_section(self) -> FilePatch:
        old, new = self._names()
        patch = FilePatch(*_without_prefixes(old, new))
        if patch.old != patch.new and None not in (patch.old, patch.new):
            raise self._refusal("starts a section that names two different files; only a git diff can rename")
        self._hunks(patch, needed=True)
        return patch

    def _git_section(self) -> FilePatch:
        header = self._line().removeprefix("diff --git ")
        self.at += 1
        notes = self._notes()
        patch = FilePatch(None, None)
        if self._line().startswith("--- "):
            patch.old, patch.new = _without_prefixes(*self._names())
            self._hunks(patch, needed=True)
        else:
            self._names_from_header(patch, header, notes)
        self._agree(patch, header, notes)
        return patch

    def _notes(self) -> dict[str, str]:
        """The extended header lines of git. A link, a submodule, a binary patch or a copy is refused."""
        notes: dict[str, str] = {}
        while self.at < len(self.lines):
            line = self._line().removesuffix("\r")
            for key in ("old mode", "new mode", "deleted file mode", "new file mode"):
                if line.startswith(key + " "):
                    if line[len(key) + 1 :] not in _MODES:
                        raise self._refusal(
                            "names a mode that is not a regular file's; links and submodules are refused"
                        )
                    notes[key] = line[len(key) + 1 :]
                    break
            else:
                for key in ("rename from", "rename to", "similarity index", "dissimilarity index", "index"):
                    if line.startswith(key + " "):
                        notes[key] = line[len(key) + 1 :]
                        break
                else:
                    if line.startswith(("copy ", "GIT binary patch", "Binary files ")):
                        raise self._refusal("is a copy or binary patch, which is not supported; write the file instead")
                    return notes
            self.at += 1
        return notes

    def _names(self) -> tuple[str | None, str | None]:
        old = self._name("--- ")
        if not self._line().startswith("+++ "):
            raise self._refusal("should be the `+++` line")
        return old, self._name("+++ ")

    def _name(self, mark: str) -> str | None:
        text = self._line().removesuffix("\r").removeprefix(mark)
        name = _unquoted(text) if text.startswith('"') else text.split("\t", 1)[0].rstrip(" ")
        if name is None or not name or any(ord(char) < 32 or ord(char) == 127 for char in name):
            raise self._refusal("has a file name that cannot be used")
        self.at += 1
        return None if name == "/dev/null" else name

    def _names_from_header(self, patch: FilePatch, header: str, notes: dict[str, str]) -> None:
        """Of a section without hunks: an empty file made or deleted, a rename, a mode change."""
        if "rename from" in notes and "rename to" in notes:
            patch.old, patch.new = _plain_name(notes["rename from"]), _plain_name(notes["rename to"])
            return
        name = _same_name(header.removesuffix("\r"))
        if name is None:
            raise self._refusal("follows a header whose file name is not clear")
        patch.old = None if "new file mode" in notes else name
        patch.new = None if "deleted file mode" in notes else name
        if patch.old == patch.new and "new mode" not in notes:
            raise self._refusal("ends a section that changes nothing")

    def _agree(self, patch: FilePatch, header: str, notes: dict[str, str]) -> None:
        """Check that the header names exactly the files that the section changes."""
        if ("new file mode" in notes) != (patch.old is None) or ("deleted file mode" in notes) != (patch.new is None):
            raise self._refusal("ends a section whose header and file names disagree")
        shown = header.removesuffix("\r")
        for name in (patch.old, patch.new):
            if name is not None and name not in shown and '"' not in shown:
                raise self._refusal("ends a section whose header names other files")
        if patch.old != patch.new and None not in (patch.old, patch.new) and "rename from" not in notes:
            raise self._refusal("ends a section that renames a file without saying so")
        mode = notes.get("new mode") or notes.get("new file mode")
        if mode is not None and ("old mode" in notes or mode == "100755"):
            patch.is_executable = mode == "100755"

    def _hunks(self, patch: FilePatch, *, needed: bool) -> None:
        while self._line().startswith("@@"):
            self.hunks += 1
            if self.hunks > MAX_HUNKS:
                raise LimitExceeded(f"A patch may hold at most {MAX_HUNKS} hunks.", maxHunks=MAX_HUNKS)
            patch.hunks.append(self._hunk())
        if needed and not patch.hunks:
            raise self._refusal("should start a hunk (`@@ -1,3 +1,4 @@`)")
        if patch.old is None and patch.new is None:
            raise self._refusal("ends a section without a file")

    def _hunk(self) -> Hunk:
        found = _HUNK.match(self._line().removesuffix("\r"))
        if found is None:
            raise self._refusal("is not a hunk header")
        start = int(found[1])
        old_left = int(found[2]) if found[2] is not None else 1
        new_left = int(found[4]) if found[4] is not None else 1
        self.at += 1
        old: list[str] = []
        new: list[str] = []
        additions = deletions = 0
        while old_left > 0 or new_left > 0:
            if self.at >= len(self.lines):
                raise self._refusal("is missing: the hunk is shorter than its header says")
            mark, text = self._line()[:1], self._line()[1:] + "\n"
            # Editors strip the one space of an empty context line.
            if mark in (" ", "", "\r"):
                text = text if mark == " " else self._line() + "\n"
                old.append(text)
                new.append(text)
                old_left -= 1
                new_left -= 1
            elif mark == "-":
                old.append(text)
                old_left -= 1
                deletions += 1
            elif mark == "+":
                new.append(text)
                new_left -= 1
                additions += 1
            else:
                raise self._refusal("is not a hunk line (it must start with a space, - or +)")
            if old_left < 0 or new_left < 0:
                raise self._refusal("makes the hunk longer than its header says")
            self.at += 1
            self._no_newline(mark, old, new)
        return Hunk(start, old, new, additions, deletions)

    def _no_newline(self, mark: str, old: list[str], new: list[str]) -> None:
        if not self._line().startswith(_NO_NEWLINE):
            return
        if mark != "+":
            old[-1] = old[-1].removesuffix("\n")
        if mark != "-":
            new[-1] = new[-1].removesuffix("\n")
        self.at += 1

    def _refusal(self, problem: str) -> InvalidRequest:
        return InvalidRequest(f"Line {self.at + 1} of the patch {problem}.", line=self.at + 1)


def _without_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Strip git's a/ and b/ where both sides have them."""
    if (old is None or old.startswith("a/")) and (new is None or new.startswith("b/")):
        return (None if old is None else old[2:]), (None if new is None else new[2:])
    return old, new


def _unquoted(text: str) -> str | None:
    """A name in git's C-style quotes."""
    out = bytearray()
    at = 1
    while at < len(text):
        char = text[at]
        if char == '"':
            try:
                return out.decode("utf-8")
            except UnicodeDecodeError:
                return None
        if char == "\\":
            if text[at + 1 : at + 4].isdigit() and len(text[at + 1 : at + 4]) == 3:
                value = int(text[at + 1 : at + 4], 8) if set(text[at + 1 : at + 4]) <= set("01234567") else 256
                if value > 255:
                    return None
                out.append(value)
                at += 4
                continue
            escaped = _ESCAPES.get(text[at + 1 : at + 2])
            if escaped is None:
                return None
            out += escaped.encode()
            at += 2
            continue
        out += char.encode("utf-8", "replace")
        at += 1
    return None


def _plain_name(text: str) -> str:
    name = _unquoted(text) if text.startswith('"') else text
    if not name or any(ord(char) < 32 for char in name):
        raise InvalidRequest("The patch renames a file to or from a name that cannot be used.")
    return name


def _same_name(header: str) -> str | None:
    """The name in `a/NAME b/NAME`, where both are the same."""
    half = len(header) // 2
    left, right = header[:half], header[half + 1 :]
    if header[half : half + 1] == " " and left.startswith("a/") and right.startswith("b/") and left[2:] == right[2:]:
        return _plain_name(left[2:])
    return None
