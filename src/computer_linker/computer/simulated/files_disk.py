"""The names of a disk in memory, and how a path finds its way among them."""

from dataclasses import dataclass, field
from itertools import count

from computer_linker.computer.facets.files import (
    FileType,
    Stat,
)
from computer_linker.errors import (
    InvalidRequest,
    NotFound,
    PathOutOfScope,
)
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import check_name

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One name: a file's content, a link's target, or a folder."""

    type: FileType
    inode: int
    modified_ns: int
    content: bytes = b""
    target: str = ""
    mode: int = 0o644

    @property
    def stat(self) -> Stat:
        size = len(self.target) if self.type == "symlink" else len(self.content)
        return Stat(self.type, size, self.modified_ns, self.mode, 1, 0, self.inode)


@dataclass(slots=True)
class Volume:
    """The names beneath one root."""

    nodes: dict[Parts, Node] = field(default_factory=dict)

    def below(self, parts: Parts) -> dict[Parts, Node]:
        size = len(parts)
        return {name: node for name, node in self.nodes.items() if name[:size] == parts}

    def names(self, parts: Parts) -> list[str]:
        return sorted(name[-1] for name in self.nodes if name[:-1] == parts and name)


class Disk:
    """Roots with their names, and what was kept of what was replaced."""

    def __init__(self) -> None:
        self._volumes: dict[str, Volume] = {}
        self._kept: dict[str, dict[Parts, Node]] = {}
        self._numbers = count(1)

    def _find(self, path: RootedPath, *, follow: bool) -> tuple[RootedPath, Node]:
        """Walk the names as a kernel does, never above the root."""
        volume, at, todo, links = self._volume(path.root), list[str](), list(path.parts), 0
        while todo:
            name = todo.pop(0)
            if name == "..":
                if not at:
                    raise PathOutOfScope(f"{path.shown} leaves the scope's root through a link.", path=path.shown)
                at.pop()
                continue
            node = volume.nodes.get((*at, name))
            if node is None or (todo and node.type not in ("directory", "symlink")):
                raise NotFound(f"{path.shown} does not exist.", path=path.shown)
            if node.type == "symlink" and (todo or follow):
                links += 1
                if node.target.startswith("/") or links > 40:
                    raise PathOutOfScope(f"{path.shown} leaves the scope's root through a link.", path=path.shown)
                todo = [part for part in node.target.split("/") if part not in ("", ".")] + todo
                continue
            at.append(name)
        real = RootedPath(path.root, tuple(at), path.rules, path.prefix)
        if real.parts != path.parts:
            check_name(real, for_writing=False)
        return real, volume.nodes[real.parts]

    def _regular(self, path: RootedPath) -> Node:
        node = self._find(path, follow=True)[1]
        if node.type != "file":
            raise InvalidRequest(f"{path.shown} is not a regular file.", path=path.shown)
        return node

    def _folder(self, path: RootedPath) -> RootedPath:
        real, node = self._find(path, follow=True)
        if node.type != "directory":
            raise NotFound(f"{path.shown} is not a folder.", path=path.shown)
        return real

    def _volume(self, root: str) -> Volume:
        if root not in self._volumes:
            self._volumes[root] = Volume({(): self._node("directory")})
        return self._volumes[root]

    def _set(self, volume: Volume, parts: Parts, node: Node) -> None:
        for size in range(1, len(parts)):
            volume.nodes.setdefault(parts[:size], self._node("directory"))
        volume.nodes[parts] = node

    def _node(self, kind: FileType, *, content: bytes = b"", target: str = "") -> Node:
        number = next(self._numbers)
        # Time passes with every change, so that two states of a file never look alike.
        mode = {"directory": 0o755, "symlink": 0o777}.get(kind, 0o644)
        return Node(kind, number, 1_700_000_000_000_000_000 + number * 1_000_000, content, target, mode)
