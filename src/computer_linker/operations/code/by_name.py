"""Answers without a language server: definitions by tree-sitter and uses by ripgrep, found by their name alone."""

import os
import re

from computer_linker.errors import LinkError, ProviderUnavailable
from computer_linker.model.paths import RootedPath
from computer_linker.operations.code.asking import NO_SERVER, Asking, At, name_at
from computer_linker.providers.held import guarded, hold_folder
from computer_linker.providers.language.answers import Spot
from computer_linker.providers.search.engine import Search
from computer_linker.providers.search.query import Breadth, TextQuery, shown
from computer_linker.providers.search.visible import shared
from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.symbols import SymbolQuery, Symbols
from computer_linker.registry import Context

_MOST = 1000
_MAX_FILE = 2 << 20
ENGINE = "tree-sitter"


async def asking_or_none(ctx: Context, target: str) -> Asking | None:
    """The server for a file; None, with a warning that names what is missing, where only names can be looked up."""
    try:
        return await Asking.of(ctx, target)
    except ProviderUnavailable as error:
        if error.details.get("reason") not in NO_SERVER:
            raise
        ctx.warn(f"{error.message} Answered by name instead, without knowing types or imports.")
        return None


async def name_in(ctx: Context, target: str, at: At) -> tuple[RootedPath, str]:
    """The file and the name that a request means."""
    path = guarded(ctx.path(target), ctx.services.home)
    data, _ = await ctx.computer.files.read_whole(path, _MAX_FILE)
    return path, name_at(data.decode("utf-8", "replace"), at)


async def definitions(ctx: Context, path: RootedPath, name: str) -> list[tuple[RootedPath, Symbol]]:
    """Definitions with exactly this name in the file's root, those of the file itself first."""
    root = RootedPath(path.root, (), path.rules, path.prefix)
    async with hold_folder(root) as folder:
        found = await ctx.use(Symbols).search(ctx.use(Search), folder, SymbolQuery(name, most=_MOST))
    exact = [(root.child(*place.split("/")), symbol) for place, symbol in found.symbols if symbol.name == name]
    return sorted(exact, key=lambda each: (each[0].parts != path.parts, each[0].parts, each[1].line))


async def uses(ctx: Context, path: RootedPath, name: str) -> list[Spot]:
    """Lines with exactly this word, in files of the same kind."""
    root = RootedPath(path.root, (), path.rules, path.prefix)
    ending = path.name.rpartition(".")[2]
    query = TextQuery(rf"\b{re.escape(name)}\b", Breadth(f"*.{ending}"))
    async with hold_folder(root) as folder:
        page = await ctx.use(Search).text(folder, query, None, _MOST)
        closed = shared(folder, {hit.path for hit in page.hits}).closed
    if page.next_position is not None:
        ctx.warn(f"Only the first {_MOST} lines with this word were looked at.")
    return [
        Spot(root.base + shown(hit.path), hit.line, hit.column, hit.preview.strip(), rooted=_rooted(root, hit.path))
        for hit in page.hits
        if hit.path not in closed
    ]


def _rooted(root: RootedPath, path: bytes) -> RootedPath:
    return root.child(*os.fsdecode(path).split("/"))


def spot_of(path: RootedPath, symbol: Symbol) -> Spot:
    """A definition as a place. Its column is not kept by the index, so it is the line's first."""
    return Spot(path.shown, symbol.line, 1, symbol.signature, rooted=path)


async def quietly(ctx: Context, path: RootedPath, name: str) -> list[tuple[RootedPath, Symbol]]:
    """The definitions of a name; none where tree-sitter cannot be used either."""
    try:
        return await definitions(ctx, path, name)
    except LinkError:
        return []
