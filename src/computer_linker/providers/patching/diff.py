"""A strict reader of unified diffs: regular files, bounded sizes, and of the text around the sections only what cannot be one.

Text before, between and after the sections is skipped, as git apply and patch do. Where it is unclear which sections are
meant, as with a diff quoted in a commit message, the whole is refused.
"""

import re
from dataclasses import dataclass, field

from computer_linker.errors import InvalidRequest, LimitExceeded
from computer_linker.providers.patching.names import (
    is_epoch,
    one_name,
    plain_name,
    same_name,
    unquoted,
    without_prefixes,
)

MAX_FILES = 500
MAX_HUNKS = 10_000
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*)?\Z")
_MODES = ("100644", "100755")
_NO_NEWLINE = "\\ No newline at end of file"
_MAIL = re.compile(r"From [0-9a-f]{7,64} ")
_NEVER_TEXT = re.compile(r"@@ -|\*{15}|Binary files .* differ|GIT binary patch")


@dataclass(frozen=True, slots=True)
class Hunk:
    """Old lines and new lines, each with its line end; the last may lack one."""

    old_start: int
    old: list[str]
    new: list[str]
    additions: int
    deletions: int
    leading: int
    """Context lines before the first change."""
    trailing: int
    """Context lines after the last change."""

    @property
    def ties_to_end(self) -> bool:
        """True when only the file's end can follow it."""
        return self.leading > 0 and self.trailing == 0

    @property
    def ties_to_start(self) -> bool:
        """True when only the file's beginning can precede it."""
        return self.leading == 0 and self.trailing > 0 and self.old_start <= 1


@dataclass(slots=True)
class FilePatch:
    """One file's section. `old` is None for a new file, `new` for a deleted one; they differ for a rename."""

    old: str | None
    new: str | None
    hunks: list[Hunk] = field(default_factory=list)
    is_executable: bool | None = None
    may_create: bool = False
    """The section adds to an empty file, or makes it where there is none."""

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
        self.after_hunk = -1
        """The line right after a hunk."""
        self.since_mail = 0
        """Sections since the last mail began."""
        self.forms: set[str] = set()
        self.has_text = False
        """There is text since the last section."""
        self.has_text_between = False
        self.folders: set[str] = set()
        """The folders that were left out of the names of plain sections, such as `new` of `new/f.txt`."""

    def run(self) -> list[FilePatch]:
        patches: list[FilePatch] = []
        while self.at < len(self.lines):
            line = self._line()
            if line.startswith("diff --git "):
                patches.append(self._git_section())
            elif line.startswith("--- ") and self._line(1).startswith("+++ "):
                patches.append(self._plain_section())
            else:
                self._text(line.removesuffix("\r"))
                continue
            self.has_text_between = self.has_text_between or (self.has_text and len(patches) > 1)
            self.has_text = False
            self.since_mail += 1
            if len(patches) > MAX_FILES:
                raise LimitExceeded(f"A patch may touch at most {MAX_FILES} files.", maxFiles=MAX_FILES)
        if not patches:
            raise InvalidRequest("The patch holds no diff section (`--- old`, `+++ new`, `@@ ... @@`).")
        if len(self.forms) > 1 and self.has_text_between:
            raise InvalidRequest(
                "The patch holds sections with and without `diff --git`, and text between them: one may be a quotation. "
                "Send only the diff itself."
            )
        for patch in patches:
            # A new or deleted file has one name, which carries the same folder as the others'.
            if patch.old is None and patch.new is not None and patch.new.partition("/")[0] in self.folders:
                patch.new = patch.new.partition("/")[2]
            elif patch.new is None and patch.old is not None and patch.old.partition("/")[0] in self.folders:
                patch.old = patch.old.partition("/")[2]
        return patches

    def _text(self, line: str) -> None:
        """Skip one line around the sections. What could be a part of a section is refused, never lost silently."""
        if _NEVER_TEXT.match(line):
            raise self._refusal("is a part of a diff without its header, or of a form that is not supported")
        if self.after_hunk == self.at and line[:1] in ("+", "-", "\\") and line not in ("-- ", "--", "---"):
            raise self._refusal("makes the hunk longer than its header says")
        if line == "---" and self.since_mail:
            raise self._refusal("ends a message that itself holds a diff; send only the diff that is meant")
        if _MAIL.match(line):
            self.since_mail = 0
        self.has_text = self.has_text or bool(line.strip())
        self.at += 1

    def _line(self, ahead: int = 0) -> str:
        return self.lines[self.at + ahead] if self.at + ahead < len(self.lines) else ""

    def _plain_section(self) -> FilePatch:
        self.forms.add("plain")
        stamps = [self._line(ahead).removesuffix("\r").partition("\t")[2] for ahead in (0, 1)]
        old, new = without_prefixes(*self._names())
        if old is not None and new is not None and old != new:
            name = one_name(old, new)
            if name is None:
                raise self._refusal("starts a section that names two different files; only a git diff can rename")
            self.folders |= {new.partition("/")[0]} if new.endswith(f"/{name}") else set()
            old = new = name
        patch = FilePatch(old, new)
        self._hunks(patch, needed=True)
        hunk = patch.hunks[0]
        if patch.old is not None and patch.new is not None and len(patch.hunks) == 1:
            if not hunk.old and hunk.old_start == 0:
                patch.may_create = True
            elif not hunk.new and is_epoch(stamps[1]):
                patch.new = None
        return patch

    def _git_section(self) -> FilePatch:
        self.forms.add("git")
        header = self._line().removeprefix("diff --git ")
        self.at += 1
        notes = self._notes()
        patch = FilePatch(None, None)
        if self._line().startswith("--- "):
            patch.old, patch.new = without_prefixes(*self._names())
            name = same_name(header.removesuffix("\r"))
            if name is not None and None in (patch.old, patch.new) and (patch.old or patch.new or "")[2:] == name:
                patch.old, patch.new = patch.old and name, patch.new and name
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
        name = unquoted(text) if text.startswith('"') else text.split("\t", 1)[0].rstrip(" ")
        if name is None or not name or any(ord(char) < 32 or ord(char) == 127 for char in name):
            raise self._refusal("has a file name that cannot be used")
        self.at += 1
        return None if name == "/dev/null" else name

    def _names_from_header(self, patch: FilePatch, header: str, notes: dict[str, str]) -> None:
        """Of a section without hunks: an empty file made or deleted, a rename, a mode change."""
        if "rename from" in notes and "rename to" in notes:
            patch.old, patch.new = plain_name(notes["rename from"]), plain_name(notes["rename to"])
            return
        name = same_name(header.removesuffix("\r"))
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
        additions = deletions = leading = trailing = 0
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
                trailing += 1
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
            if mark in ("-", "+"):
                leading = trailing if additions + deletions == 1 else leading
                trailing = 0
            if old_left < 0 or new_left < 0:
                raise self._refusal("makes the hunk longer than its header says")
            self.at += 1
            self._no_newline(mark, old, new)
        self.after_hunk = self.at
        return Hunk(start, old, new, additions, deletions, leading, trailing)

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
