"""Callers, callees, base and derived types composed of uses and definitions, where a server has no hierarchy or none runs."""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from computer_linker.errors import LinkError, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.operations.code.by_name import definitions, spot_of, uses
from computer_linker.providers.held import hold_folder
from computer_linker.providers.language.answers import Spot
from computer_linker.providers.language.text import Lines
from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.symbols import Symbols
from computer_linker.registry import Context

CLASSES = frozenset({"class", "struct", "interface", "trait", "enum", "record"})
_FUNCTIONS = frozenset({"function", "method", "constructor"})
_CALL = re.compile(r"([^\W\d]\w*)\s*\(")
_KEYWORDS = frozenset({"public", "private", "protected", "virtual", "extends", "implements", "with", "where"})
_MAX_FILE = 2 << 20
_MAX_CALLEES = 60
Named = tuple[str, Spot]
Resolve = Callable[[int, int, str], Awaitable[list[Named]]]
"""What a name at a line and column (from 1) may mean."""


class _File(NamedTuple):
    path: RootedPath
    lines: Lines
    symbols: list[Symbol]
    spots: list[Spot]


async def by_name(ctx: Context, path: RootedPath, name: str, kind: str) -> list[Named]:
    """Relatives of every definition with this name, without a server."""
    match kind:
        case "callers":
            return await _callers(ctx, await uses(ctx, path, name), name)
        case "callees":
            return await _callees(ctx, path, name)
        case "subtypes":
            return await subtypes(ctx, await uses(ctx, path, name))

    async def resolve(_line: int, _column: int, base: str) -> list[Named]:
        return [(base, spot_of(*each)) for each in await definitions(ctx, path, base)]

    return await supertypes(ctx, path, name, resolve)


async def subtypes(ctx: Context, spots: Iterable[Spot]) -> list[Named]:
    """Classes whose header has one of these uses: a use that stands between a class's name and its body."""
    found: dict[tuple[str, int], Named] = {}
    for file in await _files(ctx, spots):
        for symbol in file.symbols:
            header = _header(file.lines, symbol) if symbol.kind in CLASSES else []
            if any(
                start < spot.column <= end for spot in file.spots for line, start, end in header if line == spot.line
            ):
                column = header[0][1] - len(symbol.name) + 1
                text = file.lines.line(symbol.line - 1).strip()
                spot = Spot(file.path.shown, symbol.line, column, text, rooted=file.path)
                found[spot.path, spot.line] = (symbol.name, spot)
    return list(found.values())


async def supertypes(
    ctx: Context, path: RootedPath, name: str, resolve: Resolve, line: int | None = None
) -> list[Named]:
    """What the names in a class's header mean. Raises where the file has no such class."""
    (file,) = await _files(ctx, [Spot(path.shown, 1, 1, "", rooted=path)])
    classes = [one for one in file.symbols if one.kind in CLASSES and (one.name == name or one.line == line)]
    symbol = next((one for one in classes if line is None or one.line == line), None)
    if symbol is None:
        raise NotFound("No class begins at this place.")
    found: dict[tuple[str, int], Named] = {}
    for at, start, end in _header(file.lines, symbol):
        for each in re.finditer(r"[^\W\d]\w*(?!\w*\s*=)", file.lines.line(at - 1)[start:end]):
            # clangd takes the access of a base for the base.
            if each.group() in _KEYWORDS:
                continue
            for named in await resolve(at, start + each.start() + 1, each.group()):
                found.setdefault((named[1].path, named[1].line), named)
    # A header names other things too, such as type variables. What lies outside the root is not looked at.
    starts = {
        (file.path.shown, one.line)
        for file in await _files(ctx, [spot for _, spot in found.values()])
        for one in file.symbols
        if one.kind in CLASSES
    }
    return [named for place, named in found.items() if named[1].rooted is None or place in starts]


async def _callers(ctx: Context, spots: Iterable[Spot], name: str) -> list[Named]:
    """The innermost functions around the uses; the definition itself is no caller."""
    found: dict[tuple[str, int], Named] = {}
    for file in await _files(ctx, spots):
        functions = [one for one in file.symbols if one.kind in _FUNCTIONS]
        for spot in file.spots:
            if any(one.name == name and one.line == spot.line for one in functions):
                continue
            around = [one for one in functions if one.line <= spot.line <= one.end_line]
            if around:
                symbol = max(around, key=lambda one: one.line)
                found[file.path.shown, symbol.line] = (symbol.name, spot_of(file.path, symbol))
    return list(found.values())


async def _callees(ctx: Context, path: RootedPath, name: str) -> list[Named]:
    (file,) = await _files(ctx, [Spot(path.shown, 1, 1, "", rooted=path)])
    symbol = next((one for one in file.symbols if one.kind in _FUNCTIONS and one.name == name), None)
    if symbol is None:
        raise NotFound("No function of this name is in the file.")
    body = "\n".join(file.lines.line(number) for number in range(symbol.line - 1, symbol.end_line))
    called = [each for each in dict.fromkeys(_CALL.findall(body)) if each != name]
    if len(called) > _MAX_CALLEES:
        ctx.warn(f"Only the first {_MAX_CALLEES} names that are called were looked up.")
    found: list[Named] = []
    for each in called[:_MAX_CALLEES]:
        places = await definitions(ctx, path, each)
        found += [(each, spot_of(*place)) for place in places if place[1].kind in _FUNCTIONS | CLASSES]
    return found


async def _files(ctx: Context, spots: Iterable[Spot]) -> list[_File]:
    """The files of places inside the root, with their lines and symbols."""
    by_path: dict[RootedPath, list[Spot]] = {}
    for spot in spots:
        if spot.rooted is not None:
            by_path.setdefault(spot.rooted, []).append(spot)
    if not by_path:
        return []
    first = next(iter(by_path))
    async with hold_folder(RootedPath(first.root, (), first.rules, first.prefix)) as folder:
        symbols = await ctx.use(Symbols).of_files(folder, ["/".join(path.parts) for path in by_path])
    found = []
    for path, own in by_path.items():
        try:
            data, _ = await ctx.computer.files.read_whole(path, _MAX_FILE)
        except LinkError:
            continue
        found.append(_File(path, Lines(data.decode("utf-8", "replace")), symbols.get("/".join(path.parts), []), own))
    return found


def _header(lines: Lines, symbol: Symbol) -> list[tuple[int, int, int]]:
    """The parts of lines after a class's name and before its body: line from 1, and columns."""
    found: list[tuple[int, int, int]] = []
    for number in range(symbol.line, min(symbol.end_line, symbol.line + 20) + 1):
        text = lines.line(number - 1)
        start = text.find(symbol.name) + len(symbol.name) if number == symbol.line else 0
        brace, colon = text.find("{", start), text.rfind(":")
        end = brace if brace >= 0 else colon if text.rstrip().endswith(":") and colon >= start else len(text)
        found.append((number, start, end))
        if end < len(text):
            break
    return found
