"""Globs as ripgrep and .gitignore read them. Matching takes time in proportion to the path, whatever the pattern."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from computer_linker.errors import InvalidRequest
from computer_linker.model.levels import Levels, fits

_MAX_GLOB = 512
_MAX_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class Glob:
    """One pattern: what it matches (a path without a leading slash), and whether it takes away or gives back."""

    alternatives: tuple[Levels, ...]
    is_negated: bool
    folders_only: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        names = _as_bytes(path).split("/")
        return any(fits(segments, names) for segments in self.alternatives)


def check_glob(pattern: str) -> None:
    """Refuse a glob that is empty, overlong, malformed, or that climbs."""
    if not pattern.removeprefix("!") or len(pattern) > _MAX_GLOB or any(char in pattern for char in "\0\n\r"):
        raise InvalidRequest(f"A glob has 1 to {_MAX_GLOB} characters on one line.", field="glob")
    if ".." in pattern.split("/"):
        raise InvalidRequest("A glob cannot contain `..`.", field="glob")
    compiled(pattern)


@lru_cache(maxsize=2048)
def compiled(pattern: str) -> Glob:
    """The glob of one line of a .gitignore (or of a `glob` option). Raises InvalidRequest for a malformed one."""
    pattern = _as_bytes(pattern)
    negated = pattern.startswith("!")
    body = pattern[1:] if negated else pattern
    folders_only = body.endswith("/") and not body.endswith("\\/")
    if folders_only:
        body = body[:-1]
    if "/" not in body:
        body = "**/" + body
    body = body.removeprefix("/")
    expanded = _expanded(body)
    return Glob(tuple(_segments(glob) for glob in expanded), negated, folders_only)


def is_everything(pattern: str) -> bool:
    """True for a glob that leaves nothing out."""
    return pattern in ("*", "**", "**/*", "/**", "./**", "**/**")


def escaped(name: str) -> str:
    """A glob that matches exactly this name."""
    return "".join("\\" + char if char in "*?[]{}\\!#, " else char for char in name)


def _as_bytes(text: str) -> str:
    """One character a byte: ripgrep's `?` takes a byte, and a name need not be UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _expanded(glob: str) -> list[str]:
    """The glob without `{a,b}`: one for each choice."""
    found = _first_group(glob)
    if found is None:
        return [glob]
    start, end, choices = found
    results: list[str] = []
    for choice in choices:
        results += _expanded(glob[:start] + choice + glob[end:])
        if len(results) > _MAX_ALTERNATIVES:
            raise InvalidRequest(f"A glob stands for at most {_MAX_ALTERNATIVES} patterns.", field="glob")
    return results


def _first_group(glob: str) -> tuple[int, int, list[str]] | None:
    depth, start, cut = 0, 0, 0
    choices: list[str] = []
    for at, char in _plain_characters(glob):
        if char == "{":
            depth += 1
            if depth == 1:
                start, cut = at, at + 1
        elif char == "," and depth == 1:
            choices.append(glob[cut:at])
            cut = at + 1
        elif char == "}":
            depth -= 1
            if depth < 0:
                raise InvalidRequest("The glob has a `}` without `{`.", field="glob")
            if depth == 0:
                return start, at + 1, [*choices, glob[cut:at]]
    if depth:
        raise InvalidRequest("The glob has an unclosed `{`.", field="glob")
    return None


def _plain_characters(glob: str) -> Iterator[tuple[int, str]]:
    """Each character that is neither escaped nor inside a class."""
    at = 0
    while at < len(glob):
        if glob[at] == "\\":
            at += 2
            continue
        if glob[at] == "[":
            at = _class_end(glob, at) + 1
            continue
        yield at, glob[at]
        at += 1


def _segments(glob: str) -> Levels:
    names = [name for name in glob.split("/") if name]
    found: list[re.Pattern[str] | None] = []
    for name in names:
        if name != "**":
            found.append(re.compile(_segment_regex(name), re.DOTALL))
        elif not found or found[-1] is not None:
            found.append(None)
    if found and found[-1] is None and len(found) > 1:
        # "a/**" is everything inside a, not a itself.
        found.append(re.compile(".*", re.DOTALL))
    return tuple(found)


def _segment_regex(glob: str) -> str:
    """A regex for one name. Each `*` but the last takes the nearest fit and never gives it back."""
    chunks = [""]
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "."
        elif char == "[":
            end = _class_end(glob, at - 1)
            chunks[-1] += _class_regex(glob[at:end])
            at = end + 1
        elif char == "\\":
            if at == len(glob):
                raise InvalidRequest("The glob ends in a lone backslash.", field="glob")
            chunks[-1] += re.escape(glob[at])
            at += 1
        else:
            chunks[-1] += re.escape(char)
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>.*?{chunk})" for chunk in chunks[1:-1])
    return f"{chunks[0]}{middle}.*{chunks[-1]}"


def _class_end(glob: str, start: int) -> int:
    end = start + 1
    if glob[end : end + 1] in ("!", "^"):
        end += 1
    end = glob.find("]", end + 1)
    if end < 0 or "/" in glob[start:end]:
        raise InvalidRequest("The glob has an unclosed `[`.", field="glob")
    return end


def _class_regex(body: str) -> str:
    negated = body[:1] in ("!", "^")
    members = body[1:] if negated else body
    pieces: list[str] = []
    at = 0
    while at < len(members):
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            low, high = members[at], members[at + 2]
            if low > high:
                raise InvalidRequest("The glob has a range that runs backwards.", field="glob")
            pieces.append(f"{re.escape(low)}-{re.escape(high)}")
            at += 3
        else:
            pieces.append(re.escape(members[at]))
            at += 1
    return f"[{'^' if negated else ''}{''.join(pieces)}]"
