"""XML without entity declarations or external references, as streamed events or as a small tree."""

import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from computer_linker.providers.documents.inside.base import Refused, damaged
from computer_linker.providers.documents.inside.package import Package

_MAX_DEPTH = 2000
_MAX_NODES = 2_000_000


@dataclass(slots=True)
class Node:
    """An element of a small tree. Names are without their prefix."""

    name: str
    attributes: dict[str, str]
    children: list["Node"] = field(default_factory=list)
    text: str = ""
    tail: str = ""

    def find_all(self, *names: str) -> Iterator["Node"]:
        """Descendants with one of these names, in order."""
        stack = list(reversed(self.children))
        while stack:
            node = stack.pop()
            if node.name in names:
                yield node
            stack += reversed(node.children)

    def find(self, *names: str) -> "Node | None":
        return next(self.find_all(*names), None)

    def all_text(self) -> str:
        pieces, stack = [self.text], list(reversed([(child, False) for child in self.children]))
        while stack:
            node, is_done = stack.pop()
            if is_done:
                pieces.append(node.tail)
                continue
            pieces.append(node.text)
            stack.append((node, True))
            stack += reversed([(child, False) for child in node.children])
        return "".join(pieces)


def local(name: str) -> str:
    """A name without its prefix."""
    return name.rpartition(":")[2]


def parser(
    start: Callable[[str, dict[str, str]], None], end: Callable[[str], None], text: Callable[[str], None]
) -> Any:
    """An expat parser that refuses entity declarations; handlers get names without prefixes."""
    made = expat.ParserCreate()
    made.buffer_text = True
    depth = 0

    def started(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise Refused("limit_exceeded", f"Elements lie more than {_MAX_DEPTH} deep in one another.")
        start(local(name), attributes)

    def ended(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(local(name))

    def refuse(*_: Any) -> None:
        raise Refused("execution_failed", "The file declares XML entities, which no document needs: it is not decoded.")

    made.StartElementHandler, made.EndElementHandler, made.CharacterDataHandler = started, ended, text
    made.EntityDeclHandler = refuse
    return made


def feed(made: Any, pieces: Iterable[bytes]) -> None:
    """Parse all of it. Raises Refused when it is not well-formed."""
    try:
        for piece in pieces:
            made.Parse(piece, False)
        made.Parse(b"", True)
    except expat.ExpatError as error:
        raise damaged(f"its XML is not well-formed ({error})") from None
    except (ValueError, LookupError) as error:
        raise damaged(f"its XML has an unusable encoding ({error})") from None


def tree(content: bytes) -> Node:
    """A small document as a tree."""
    root = Node("", {})
    stack, count = [root], 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _MAX_NODES:
            raise Refused("limit_exceeded", f"One part has more than {_MAX_NODES} elements.")
        # With prefixes removed, `r:id` wins over `id`: a relation is what readers look for.
        ordered = sorted(attributes.items(), key=lambda item: ":" in item[0])
        node = Node(name, {local(key): value for key, value in ordered})
        stack[-1].children.append(node)
        stack.append(node)

    def text(data: str) -> None:
        if stack[-1].children:
            stack[-1].children[-1].tail += data
        else:
            stack[-1].text += data

    def end(_name: str) -> None:
        stack.pop()

    feed(parser(start, end, text), [content])
    return root.children[0]


def relations(package: Package, part: str) -> dict[str, str]:
    """The parts that a part refers to, by relation id; external targets are left out and never fetched."""
    folder, name = posixpath.split(part)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    if place not in package:
        return {}
    found = {}
    for node in tree(package.read(place)).find_all("Relationship"):
        target = node.attributes.get("Target", "")
        if node.attributes.get("TargetMode") != "External" and target:
            whole = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            found[node.attributes.get("Id", "")] = whole
    return found
