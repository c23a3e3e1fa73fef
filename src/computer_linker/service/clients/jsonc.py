"""Settings in JSON, with or without comments: one member is changed, every other byte stays as it is."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from computer_linker.service.clients.faults import CannotEdit

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"[-+.\w]+")
_MAX_DEPTH = 100


@dataclass(slots=True)
class Node:
    """A value and the span of text it came from; an object also knows its members."""

    value: Any
    start: int
    end: int
    members: dict[str, "Member"] = field(default_factory=dict)


@dataclass(slots=True)
class Member:
    """One `"name": value` of an object, from the name's first quote to the value's end."""

    start: int
    node: Node


class Jsonc:
    """The document language of most clients."""

    def get(self, text: str, path: tuple[str, ...]) -> Any:
        """The value there; None when there is none."""
        found = _find(_parse(text), path) if _without_comments(text) else None
        return None if found is None else found.value

    def put(self, text: str, path: tuple[str, ...], value: dict[str, Any]) -> str:
        """The text with this value there, objects on the way made where they are missing."""
        if not _without_comments(text):
            whole: Any = value
            for name in reversed(path):
                whole = {name: whole}
            # A comment without a line end would swallow what comes behind it.
            gap = "" if not text or text.endswith("\n") else "\n"
            return text + gap + json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
        root = _parse(text)
        found = _find(root, path)
        if found is not None:
            made = _written(text, value, len(path))
            return text[: found.start] + made + text[found.end :]
        depth, parent = _deepest(root, path)
        inner: Any = value
        for name in reversed(path[depth + 1 :]):
            inner = {name: inner}
        return _insert(text, parent, depth, path[depth], inner)

    def drop(self, text: str, path: tuple[str, ...]) -> str:
        """The text without that member, and without the objects that are empty because of it."""
        if self.get(text, path) is None:
            return text
        root = _parse(text)
        depth = len(path) - 1
        while depth and len(_need(_find(root, path[:depth])).members) == 1:
            depth -= 1
        parent = _need(_find(root, path[:depth]))
        return _cut(text, parent, path[depth])


def _parse(text: str) -> Node:
    root, end = _value(text, _skip(text, 0), 0)
    if _skip(text, end) != len(text):
        raise CannotEdit("it goes on after the end of its JSON value")
    if not isinstance(root.value, dict):
        raise CannotEdit("it is not a JSON object")
    return root


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > _MAX_DEPTH:
        raise CannotEdit("it is nested too deeply")
    match text[at : at + 1]:
        case "{":
            return _object(text, at, depth)
        case "[":
            return _array(text, at, depth)
        case '"':
            string, end = _string(text, at)
            return Node(string, at, end), end
    atom = _ATOM.match(text, at)
    if atom is None:
        raise _bad(text, at)
    try:
        return Node(json.loads(atom.group()), at, atom.end()), atom.end()
    except ValueError:
        raise _bad(text, at) from None


def _object(text: str, start: int, depth: int) -> tuple[Node, int]:
    node = Node({}, start, start)
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        name, end = _string(text, at)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise _bad(text, colon)
        if name in node.members:
            raise CannotEdit(f"it names {name[:60]!r} twice")
        inner, end = _value(text, _skip(text, colon + 1), depth + 1)
        node.members[name] = Member(at, inner)
        node.value[name] = inner.value
        at = _next(text, end, "}")
    node.end = at + 1
    return node, at + 1


def _array(text: str, start: int, depth: int) -> tuple[Node, int]:
    items: list[Any] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        inner, end = _value(text, at, depth + 1)
        items.append(inner.value)
        at = _next(text, end, "]")
    return Node(items, start, at + 1), at + 1


def _next(text: str, end: int, closing: str) -> int:
    """Where the next item or the closing bracket is; a comma before the bracket is allowed, as these clients allow it."""
    at = _skip(text, end)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _bad(text, at)
    return at


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if found is None:
        raise _bad(text, at)
    try:
        return str(json.loads(found.group())), found.end()
    except ValueError:
        raise _bad(text, at) from None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _bad(text: str, at: int) -> CannotEdit:
    return CannotEdit(f"it is not JSON at line {text.count(chr(10), 0, at) + 1}")


def _without_comments(text: str) -> str:
    return text[_skip(text, 0) :]


def _find(root: Node, path: tuple[str, ...]) -> Node | None:
    for name in path:
        member = root.members.get(name)
        if member is None:
            return None
        root = member.node
    return root


def _need(node: Node | None) -> Node:
    assert node is not None
    return node


def _deepest(root: Node, path: tuple[str, ...]) -> tuple[int, Node]:
    """How far the path leads, and the object it ends in."""
    for depth, name in enumerate(path):
        member = root.members.get(name)
        if member is None:
            return depth, root
        if not isinstance(member.node.value, dict):
            raise CannotEdit(f"`{'.'.join(path[: depth + 1])}` is not an object")
        root = member.node
    raise AssertionError("the path is there")


def _insert(text: str, parent: Node, depth: int, name: str, value: Any) -> str:
    made = f"{json.dumps(name)}: {_written(text, value, depth + 1)}"
    unit = _indent_of(text)
    line = _newline(text) + unit * (depth + 1) if unit is not None else " "
    if parent.members:
        last = max(parent.members.values(), key=lambda member: member.start).node.end
        return text[:last] + "," + line + made + text[last:]
    closing = _newline(text) + unit * depth if unit is not None else ""
    inside = text[parent.start + 1 : parent.end - 1]
    # What an empty object holds is space or comments; they stay in front.
    kept = inside.rstrip()
    return (
        text[: parent.start + 1] + kept + (line if unit is not None else "") + made + closing + text[parent.end - 1 :]
    )


def _cut(text: str, parent: Node, name: str) -> str:
    member = parent.members[name]
    others = [other for other in parent.members.values() if other is not member]
    before = max((other.node.end for other in others if other.node.end <= member.start), default=None)
    if before is not None:
        # From the end of the member before, with its comma, to our own end.
        return text[:before] + text[member.node.end :]
    after = min((other.start for other in others if other.start > member.start), default=None)
    if after is not None:
        return text[: member.start] + text[after:]
    end = _skip(text, member.node.end)
    end = end + 1 if text[end : end + 1] == "," else member.node.end
    head, tail = text[: member.start], text[end : parent.end - 1]
    return head.rstrip() + (tail.strip() and tail) + text[parent.end - 1 :]


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
    return "  " if "\n" in text.strip() or len(_without_comments(text).strip()) <= 2 else None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
