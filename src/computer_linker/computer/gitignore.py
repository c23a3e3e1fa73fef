"""Matching paths against .gitignore files; patterns are compiled for speed."""

import re
from dataclasses import dataclass

Levels = tuple[re.Pattern[str] | None, ...]
"""A path pattern, one per folder level; None is `**`, any number of levels."""

_MAX_PATTERN = 4096
"""PATH_MAX: a longer pattern matches nothing, and is slow to compile."""
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern line. `by_name` matches the last name alone, else the path below the .gitignore's folder."""

    levels: Levels
    is_negated: bool
    folders_only: bool
    by_name: bool


@dataclass(slots=True)
class IgnoreFile:
    """The patterns of one .gitignore. The last pattern that matches decides."""

    base: str
    """Its folder with a trailing slash; empty for the root."""
    rules: list[Rule]
    names: frozenset[str] = frozenset()
    """Plain names that are ignored at any level, when no later pattern can override them."""
    suffixes: tuple[str, ...] = ()

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """True to ignore, False to include, None when no pattern matches."""
        if name in self.names or (self.suffixes and name.endswith(self.suffixes)):
            return True
        below = path[len(self.base) :].split("/")
        for rule in self.rules:
            if rule.folders_only and not is_folder:
                continue
            if _fits(rule.levels, [name] if rule.by_name else below):
                return not rule.is_negated
        return None


def parse_ignore(text: str, base: str) -> IgnoreFile:
    """Read a .gitignore that lies in the folder `base`."""
    trimmed = (_trimmed(line) for line in text.split("\n"))
    lines = [line for line in trimmed if line and not line.startswith("#") and len(line) <= _MAX_PATTERN]
    if any(line.startswith("!") for line in lines):
        return IgnoreFile(base, [rule for line in reversed(lines) if (rule := _rule(line))])
    # Without a negation the order does not matter, so the commonest forms need no pattern at all.
    names = frozenset(line for line in lines if _is_plain(line))
    suffixes = tuple(line[1:] for line in lines if line.startswith("*") and _is_plain(line[1:]))
    rest = [line for line in lines if not _is_plain(line) and not (line.startswith("*") and _is_plain(line[1:]))]
    return IgnoreFile(base, [rule for line in rest if (rule := _rule(line))], names, suffixes)


def is_ignored(files: tuple[IgnoreFile, ...], path: str, *, is_folder: bool) -> bool:
    """True when git would ignore `path`, given the .gitignore files from the root down to its folder."""
    name = path.rpartition("/")[2]
    for ignore in reversed(files):
        verdict = ignore.verdict(path, name, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _trimmed(line: str) -> str:
    line = line.rstrip("\r\n")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    return line


def _is_plain(line: str) -> bool:
    return bool(line) and not any(char in "*?[]\\/!#" for char in line)


def _rule(line: str) -> Rule | None:
    is_negated = line.startswith("!")
    if is_negated:
        line = line[1:]
    folders_only = line.endswith("/") and not line.endswith("\\/")
    body = line[:-1] if folders_only else line
    if not body or body == "/":
        return None
    by_name = "/" not in body
    if body.startswith("/"):
        body = body[1:]
    levels = _levels(body)
    return None if levels is None else Rule(levels, is_negated, folders_only, by_name)


def _levels(body: str) -> Levels | None:
    """One pattern per folder level, None for `**`; None as a whole for a pattern that matches nothing in git."""
    found: list[re.Pattern[str] | None] = []
    names = _split(body)
    if names is None:
        return None
    for name in names:
        if name == "**":
            if not found or found[-1] is not None:
                found.append(None)
            continue
        pattern = _name_regex(name)
        if pattern is None:
            return None
        found.append(re.compile(pattern, re.DOTALL))
    if found[-1] is None:
        # "a/**" is everything inside a, not a itself.
        found.append(re.compile(".+", re.DOTALL))
    return tuple(found)


def _split(body: str) -> list[str] | None:
    """Split the pattern at slashes, except those inside a character class or behind a backslash."""
    names, at = [""], 0
    while at < len(body):
        end = at + 1
        if body[at] == "[":
            found = _bracket(body, at)
            if found is None:
                return None
            end = found[1]
        elif body[at] == "\\":
            end = at + 2
        if body[at:end] in ("/", "\\/"):
            names.append("")
        else:
            names[-1] += body[at:end]
        at = end
    return names


def _name_regex(level: str) -> str | None:
    """Compile one level of the pattern. Each `*` but the last is atomic (no backtracking), so matching stays fast."""
    chunks = [""]
    at = 0
    while at < len(level):
        char = level[at]
        if char == "*":
            while at < len(level) and level[at] == "*":
                at += 1
            chunks.append("")
            continue
        if char == "?":
            chunks[-1] += r"[^/]"
        elif char == "[":
            found = _bracket(level, at)
            if found is None:
                return None
            text, at = found
            chunks[-1] += text
            continue
        else:
            if char == "\\":
                at += 1
                if at == len(level):
                    return None
            chunks[-1] += re.escape(level[at])
        at += 1
    if len(chunks) == 1:
        return chunks[0]
    return chunks[0] + "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1]) + r"[^/]*" + chunks[-1]


_KIND = re.compile(r"\[:([^\]]*):\]")
_KINDS = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": r"\x21-\x7e",
    "lower": "a-z", "print": r"\x20-\x7e", "punct": r"!-/:-@\[-`{-~", "space": r" \t\n\v\f\r", "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}  # fmt: skip


def _bracket(body: str, at: int) -> tuple[str, int] | None:
    """Parse a character class as git does, and where it ends. None where git treats the pattern as malformed."""
    at += 1
    is_negated = body[at : at + 1] in ("!", "^")
    if is_negated:
        at += 1
    members, before, first = "", "", True
    while at < len(body) and (first or body[at] != "]"):
        first = False
        char, is_plain = body[at], body[at] != "\\"
        if not is_plain:
            at += 1
            if at == len(body):
                return None
            char = body[at]
        if is_plain and char == "-" and before and body[at + 1 : at + 2] not in ("", "]"):
            at += 2 if body[at + 1] == "\\" else 1
            if at == len(body):
                return None
            # A reversed range contains only its start, which is a member already.
            members += f"{re.escape(before)}-{re.escape(body[at])}" if before <= body[at] else ""
            before = ""
        elif is_plain and char == "[" and body[at + 1 : at + 2] == ":" and "]" not in body[at + 2 :]:
            return None
        elif is_plain and char == "[" and (kind := _KIND.match(body, at)):
            if kind[1] not in _KINDS:
                return None
            members, before, at = members + _KINDS[kind[1]], "", kind.end() - 1
        else:
            members, before = members + re.escape(char), char
        at += 1
    if at >= len(body):
        return None
    return (f"(?!/)[^{members}]" if is_negated else f"(?!/)[{members}]"), at + 1


def _fits(levels: Levels, names: list[str]) -> bool:
    """Whether the names match, in time bounded by the product of both lengths: only the last `**` is ever retried."""
    at = name = 0
    star = retry = -1
    while name < len(names):
        level = levels[at] if at < len(levels) else _NOTHING
        if level is None:
            star, retry = at, name
            at += 1
        elif level.fullmatch(names[name]):
            at += 1
            name += 1
        elif star >= 0:
            retry += 1
            at, name = star + 1, retry
        else:
            return False
    return all(level is None for level in levels[at:])
