"""Changes to a disk in memory: on a copy of its names, so that all of them happen or none."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from computer_linker.computer.facets.files import (
    Change,
    Changed,
    Copy,
    Inverse,
    Keeper,
    MakeFolder,
    Mark,
    Move,
    Remove,
    Restore,
    Write,
)
from computer_linker.computer.simulated.files_disk import Disk, Node, Parts, Volume
from computer_linker.errors import (
    AlreadyExists,
    Conflict,
    InvalidRequest,
    NotFound,
)
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import check_name


class ChangingDisk(Disk):
    """A disk that can be changed."""

    def _rehearsed(
        self, changes: Sequence[Change], keeper: Keeper | None
    ) -> tuple[dict[str, Volume], list[Inverse], list[Changed]]:
        """Make the changes on a copy; the old names stay what they were when one fails."""
        before = self._volumes
        self._volumes = {root: Volume(dict(volume.nodes)) for root, volume in before.items()}
        steps: list[Inverse] = []
        results: list[Changed] = []
        try:
            for change in changes:
                results.append(self._make(change, keeper, steps))
            return self._volumes, steps, results
        finally:
            self._volumes = before

    def _make(self, change: Change, keeper: Keeper | None, steps: list[Inverse]) -> Changed:
        match change:
            case Write():
                return self._write(change, keeper, steps)
            case MakeFolder():
                return self._make_folder(change, steps)
            case Remove():
                return self._remove(change, keeper, steps)
            case Move():
                return self._move(change, keeper, steps)
            case Copy():
                return self._copy(change, keeper, steps)
            case Restore():
                return self._restore(change, keeper, steps)
            case _:
                assert_never(change)

    def _write(self, change: Write, keeper: Keeper | None, steps: list[Inverse]) -> Changed:
        path = self._placed(change.path, parents=change.create_parents, follow=not change.must_be_new, steps=steps)
        volume = self._volume(path.root)
        old = volume.nodes.get(path.parts)
        if old is not None and change.must_be_new:
            raise AlreadyExists(f"{change.path.shown} already exists.", path=change.path.shown)
        if old is not None and old.type != "file":
            raise InvalidRequest(f"{change.path.shown} is not a regular file.", path=change.path.shown)
        _expect(change.expect, old, change.path)
        if change.if_sha256 and (old is None or hashlib.sha256(old.content).hexdigest() != change.if_sha256.lower()):
            raise Conflict(f"{change.path.shown} is another version.", path=change.path.shown)
        raw = change.content if isinstance(change.content, bytes) else b"".join(change.content())
        raw = old.content + raw if change.append and old is not None else raw
        node = self._node("file", content=raw)
        node = replace(node, mode=old.mode if old else 0o755 if change.is_executable else 0o644)
        self._replace(path, {path.parts: node}, keeper, steps)
        action = "modified" if old is not None else "created"
        digest = hashlib.sha256(raw).hexdigest()
        return Changed(change.path, action, len(raw), digest, is_confirmed=True)  # type: ignore[arg-type]

    def _make_folder(self, change: MakeFolder, steps: list[Inverse]) -> Changed:
        path = self._placed(change.path, parents=change.parents, follow=False, steps=steps)
        old = self._volume(path.root).nodes.get(path.parts)
        if old is not None and old.type != "directory":
            raise AlreadyExists(f"{change.path.shown} already exists.", path=change.path.shown)
        if old is None:
            self._volume(path.root).nodes[path.parts] = self._node("directory")
            steps.insert(0, {"do": "rmdir", "root": path.root, "path": list(path.parts)})
        return Changed(change.path, "created" if old is None else "unchanged", is_confirmed=True)

    def _remove(self, change: Remove, keeper: Keeper | None, steps: list[Inverse]) -> Changed:
        path = self._placed(change.path, parents=False, follow=False, steps=steps)
        volume = self._volume(path.root)
        found = volume.below(path.parts)
        if change.only_if_empty:
            if len(found) == 1:
                del volume.nodes[path.parts]
                steps.insert(0, {"do": "mkdir", "root": path.root, "path": list(path.parts)})
            return Changed(change.path, "deleted" if len(found) == 1 else "unchanged", is_confirmed=True)
        if not found:
            raise NotFound(f"{change.path.shown} does not exist.", path=change.path.shown)
        if found[path.parts].type == "directory" and not change.recursive:
            raise InvalidRequest(f"{change.path.shown} is a folder; use recursive.", path=change.path.shown)
        _expect(change.expect, found[path.parts], change.path)
        self._replace(path, {}, keeper, steps)
        return Changed(change.path, "deleted", entries=len(found), is_confirmed=True)

    def _move(self, change: Move, keeper: Keeper | None, steps: list[Inverse]) -> Changed:
        source = self._placed(change.path, parents=False, follow=False, steps=steps)
        found = self._volume(source.root).below(source.parts)
        if not found:
            raise NotFound(f"{change.path.shown} does not exist.", path=change.path.shown)
        _expect(change.expect, found[source.parts], change.path)
        path = self._free(change.destination, change.overwrite, change.create_parents, source, steps)
        for parts in found:
            del self._volume(source.root).nodes[parts]
        moved = {path.parts + parts[len(source.parts) :]: node for parts, node in found.items()}
        undo: list[Inverse] = []
        self._replace(path, moved, keeper, undo)
        mark = found[source.parts].stat.mark
        steps[:0] = [
            {
                "do": "move", "root": path.root, "path": list(path.parts), "toRoot": source.root,
                "to": list(source.parts), "after": mark.to_list(),
            },
            *[replaced for step in undo if (replaced := _vacant(step)) is not None],
        ]  # fmt: skip
        return Changed(change.path, "moved", entries=len(found), is_confirmed=True)

    def _copy(self, change: Copy, keeper: Keeper | None, steps: list[Inverse]) -> Changed:
        real, node = self._find(change.path, follow=False)
        if node.type not in ("file", "directory"):
            raise InvalidRequest(f"{change.path.shown} is a link or special file.", path=change.path.shown)
        found = self._volume(real.root).below(real.parts)
        path = self._free(change.destination, change.overwrite, change.create_parents, real, steps)
        copied = {
            path.parts + parts[len(real.parts) :]: replace(node, inode=next(self._numbers))
            for parts, node in found.items()
            if node.type in ("file", "directory")
        }
        self._replace(path, copied, keeper, steps)
        return Changed(change.path, "copied", entries=len(copied), is_confirmed=True)

    def _restore(self, change: Restore, keeper: Keeper | None, steps: list[Inverse]) -> Changed:
        kept = self._kept.get(change.kept)
        if kept is None:
            raise NotFound(f"What {change.path.shown} was is not kept any more.", path=change.path.shown)
        path = self._placed(change.path, parents=True, follow=False, steps=steps)
        old = self._volume(path.root).nodes.get(path.parts)
        if (change.expect is None and old is not None) or (
            change.expect and not change.expect.fits(old.stat if old else None)
        ):
            raise Conflict(f"{change.path.shown} changed since.", path=change.path.shown)
        self._replace(path, {path.parts + below: node for below, node in kept.items()}, keeper, steps)
        return Changed(change.path, "modified" if old else "created", is_confirmed=True)

    def _replace(self, path: RootedPath, nodes: dict[Parts, Node], keeper: Keeper | None, steps: list[Inverse]) -> None:
        """Put nodes in the place of whatever is at `path`, and note how to take that back."""
        volume = self._volume(path.root)
        old = volume.below(path.parts)
        for parts in old:
            del volume.nodes[parts]
        volume.nodes.update(nodes)
        step: Inverse = {"do": "remove", "root": path.root, "path": list(path.parts)}
        if old and keeper is not None:
            name = keeper.new_name()
            self._kept[name] = {parts[len(path.parts) :]: node for parts, node in old.items()}
            step = {"do": "restore", "root": path.root, "path": list(path.parts), "kept": name}
        if nodes:
            step["after"] = nodes[path.parts].stat.mark.to_list()
        if old or nodes:
            steps.insert(0, step)

    def _free(
        self, destination: RootedPath, overwrite: bool, parents: bool, source: RootedPath, steps: list[Inverse]
    ) -> RootedPath:
        path = self._placed(destination, parents=parents, follow=False, steps=steps)
        if path.root == source.root and path.parts[: len(source.parts)] == source.parts:
            raise InvalidRequest(f"{source.shown} cannot go into itself.", path=source.shown)
        old = self._volume(path.root).nodes.get(path.parts)
        if old is not None and not overwrite:
            raise AlreadyExists(f"{destination.shown} already exists.", path=destination.shown)
        if old is not None and (old.type != "file" or self._volume(source.root).nodes[source.parts].type != "file"):
            raise Conflict(f"{destination.shown} exists; only a file replaces a file.", path=destination.shown)
        return path

    def _placed(self, path: RootedPath, *, parents: bool, follow: bool, steps: list[Inverse]) -> RootedPath:
        """The real path of a name that is to be changed, its folder there or made."""
        if not path.parts:
            raise InvalidRequest("The scope's root itself cannot be changed; name something inside it.")
        volume = self._volume(path.root)
        try:
            real = self._folder(path.parent)
        except NotFound:
            if not parents:
                raise
            self._make_folder(MakeFolder(path.parent, parents=True), steps)
            real = self._folder(path.parent)
        place = real.child(path.name)
        found = volume.nodes.get(place.parts)
        if follow and found is not None and found.type == "symlink":
            place = self._find(path, follow=True)[0]
        check_name(place, for_writing=True)
        return place


def _expect(expect: Mark | None, node: Node | None, path: RootedPath) -> None:
    if expect is not None and not expect.fits(node.stat if node else None):
        raise Conflict(f"{path.shown} changed since.", path=path.shown)


def _vacant(step: Inverse) -> Inverse | None:
    """Of what a move replaced: put back once the moved file has left the name."""
    if step["do"] != "restore":
        return None
    return {key: value for key, value in step.items() if key != "after"}  # type: ignore[return-value]
