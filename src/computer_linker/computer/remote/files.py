"""Files of another machine: paths beneath the roots it granted, changed there as one batch with its undo journal."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import TypeAdapter, ValidationError

from computer_linker.computer.facets.files import (
    Beside,
    Change,
    Changed,
    Copy,
    EntryField,
    Gate,
    Inverse,
    Keeper,
    Listing,
    MakeFolder,
    Move,
    Piece,
    Remove,
    Restore,
    Stat,
    Tree,
    Window,
    Write,
)
from computer_linker.computer.facets.lines import MAX_REPLY
from computer_linker.computer.remote.link import Link, ask
from computer_linker.computer.remote.methods import methods_of
from computer_linker.errors import (
    InvalidRequest,
    LimitExceeded,
    PathOutOfScope,
    ProviderUnavailable,
    UnsupportedPlatform,
)
from computer_linker.model.base import Model
from computer_linker.model.paths import RootedPath

MAX_SENT = 12_000_000
"""The size limit of one batch of changes; file.copy streams larger content."""
_KINDS: dict[str, type[Change]] = {
    "write": Write, "folder": MakeFolder, "remove": Remove, "move": Move, "copy": Copy, "restore": Restore,
}  # fmt: skip


class SentChange(Model):
    """One change on the wire: its kind, and its fields by their Python names."""

    do: Literal["write", "folder", "remove", "move", "copy", "restore"]
    fields: dict[str, Any]


class RemoteFiles:
    """The files facet of the machine at the other end. That machine resolves every path and applies its own rules too."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._methods = methods_of("files")

    def protect(self, state: Path) -> None:
        """The other machine protects its own state."""

    async def stat(self, path: RootedPath) -> Stat:
        return await self._ask("stat", path)  # type: ignore[no-any-return]  # decoded by its own annotation

    async def sha256(self, path: RootedPath) -> str:
        return await self._ask("sha256", path)  # type: ignore[no-any-return]

    async def read(self, path: RootedPath, window: Window) -> Piece:
        return await self._ask("read", path, window)  # type: ignore[no-any-return]

    async def read_whole(self, path: RootedPath, limit: int) -> tuple[bytes, Stat]:
        return await self._ask("read_whole", path, limit)  # type: ignore[no-any-return]

    async def list_folder(
        self,
        path: RootedPath,
        *,
        max_results: int,
        include_hidden: bool = True,
        after: str | None = None,
        fields: list[EntryField] | None = None,
    ) -> Listing:
        options: dict[str, object] = {"max_results": max_results, "include_hidden": include_hidden, "after": after}
        if fields is not None:
            options["fields"] = fields
        return await self._ask("list_folder", path, **options)  # type: ignore[no-any-return]

    async def tree(
        self,
        path: RootedPath,
        *,
        max_depth: int,
        max_entries: int,
        gitignore: bool,
        max_bytes: int = MAX_REPLY,
        after: tuple[str, ...] | None = None,
    ) -> Tree:
        limits = {
            "max_depth": max_depth, "max_entries": max_entries, "gitignore": gitignore, "max_bytes": max_bytes, "after": after,
        }  # fmt: skip
        return await self._ask("tree", path, **limits)  # type: ignore[no-any-return]

    async def change(
        self, changes: Sequence[Change], *, gate: Gate, keeper: Keeper | None = None, beside: Beside | None = None
    ) -> list[Changed]:
        """Make all of the changes there or none. The gate is awaited before anything is sent; undo data is stored there."""
        if not changes:
            return []
        scope, sent = self._sent(changes)
        await gate()
        answer = await self._link.ask(scope, "files.change", {"changes": sent}, is_safe=False)
        done, steps = _parsed_reply(answer.value)
        if keeper is not None:
            keeper.begun(steps, [])
            keeper.done()
        return done

    async def rehearse(self, changes: Sequence[Change], *, keeper: Keeper | None = None) -> None:
        if changes:
            scope, sent = self._sent(changes)
            await self._link.ask(scope, "files.rehearse", {"changes": sent}, is_safe=True)

    def open_file(self, path: RootedPath) -> NoReturn:
        raise UnsupportedPlatform("A file of another computer cannot be held here; file.copy brings it.")

    def open_folder(self, path: RootedPath) -> NoReturn:
        raise UnsupportedPlatform("A folder of another computer cannot be held here.")

    async def _ask(self, name: str, path: RootedPath, *given: Any, **named: Any) -> Any:
        method = self._methods[name]
        return await ask(self._link, self._scope_of(path), method, method.to_params((path, *given), named))

    def _scope_of(self, path: RootedPath) -> str:
        for scope in self._link.offer.scopes:
            if scope.type == "folder" and (path.root == scope.id or path.root in scope.roots):
                return scope.id
        raise PathOutOfScope("That computer gave this one no scope with this folder.")

    def _sent(self, changes: Sequence[Change]) -> tuple[str, list[dict[str, Any]]]:
        scopes = {self._scope_of(path) for change in changes for path in paths_of(change)}
        if len(scopes) != 1:
            raise InvalidRequest("Changes of one batch lie in one scope of the other computer.")
        sent = [packed_change(change) for change in changes]
        size = sum(len(one["fields"].get("content", b"")) for one in sent)
        if size > MAX_SENT:
            raise LimitExceeded("That is too much for one batch; file.copy streams large files.", maxBytes=MAX_SENT)
        return scopes.pop(), sent


def _parsed_reply(value: Any) -> tuple[list[Changed], list[Inverse]]:
    """The changes made, and how to revert them. After an unreadable reply the changes may have been made."""
    try:
        steps: list[Inverse] = TypeAdapter(list[Inverse]).validate_python(value["steps"])
        return changed_adapter().validate_python(value["done"]), steps
    except (KeyError, TypeError, ValidationError) as error:
        raise ProviderUnavailable("What the other computer changed cannot be read.", effect="unverifiable") from error


def packed_change(change: Change) -> dict[str, Any]:
    """A change as plain values."""
    if isinstance(change, Write) and not isinstance(change.content, bytes):
        change = replace(change, content=b"".join(change.content()))
    kind = next(name for name, made in _KINDS.items() if type(change) is made)
    return {"do": kind, "fields": TypeAdapter(type(change)).dump_python(change)}


def unpacked_change(value: Any) -> Change:
    """A change from plain values. Raises InvalidRequest for anything else."""
    try:
        sent = SentChange.from_wire(value)
        if sent.do == "write" and type(sent.fields.get("content")) is not bytes:
            raise InvalidRequest("The content of a write is bytes.")
        made: Change = TypeAdapter(_KINDS[sent.do]).validate_python(sent.fields)
        return made
    except ValidationError as error:
        raise InvalidRequest("A change does not fit.") from error


def paths_of(change: Change) -> list[RootedPath]:
    """Every path a change affects."""
    return [change.path, *([change.destination] if isinstance(change, Move | Copy) else [])]


@cache
def changed_adapter() -> TypeAdapter[list[Changed]]:
    """The wire codec of a list of results."""
    return TypeAdapter(list[Changed])
