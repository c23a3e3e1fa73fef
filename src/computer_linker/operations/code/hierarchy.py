"""code.hierarchy: callers and callees of a function, base and derived types of a class."""

import re
from typing import Annotated, Any, Literal

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.errors import LinkError, NotFound
from computer_linker.operations.code.asking import Asking, At, position_in
from computer_linker.providers.language.answers import Spot
from computer_linker.providers.language.text import Lines, position_from
from computer_linker.providers.language.uris import uri_of
from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.symbols import Symbols
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_CALLS = {"callers": ("callHierarchy/incomingCalls", "from"), "callees": ("callHierarchy/outgoingCalls", "to")}
_TYPES = {"supertypes": "typeHierarchy/supertypes", "subtypes": "typeHierarchy/subtypes"}
_CLASSES = frozenset({"class", "struct", "interface", "trait", "enum", "record"})
_MOST = 500


class HierarchyInput(At):
    kind: Literal["callers", "callees", "supertypes", "subtypes"]


class Relative(TypedDict):
    name: str
    path: str
    line: int
    column: int
    text: str


class Hierarchy(Model):
    items: Annotated[list[Relative], Field(description="Each with where it is defined.")]
    engine: str
    truncated: bool = False


@operation(
    "code.hierarchy",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.RELATIVES,
    examples=[
        Example(
            "Who calls it.", {"target": "src/greet.py", "input": {"kind": "callers", "symbol": "greet"}}, runs=False
        )
    ],
)
async def code_hierarchy(ctx: Context, target: str, input: HierarchyInput) -> Hierarchy:
    """Find the callers or callees of a function, or the direct base or derived types of a class."""
    asking = await Asking.of(ctx, target)
    engine = asking.engine
    if input.kind in _CALLS:
        asking.need("callHierarchyProvider", "callers and callees")
        method, side = _CALLS[input.kind]
        prepared = await _prepared(asking, "textDocument/prepareCallHierarchy", input)
        calls = await asking.follow(method, {"item": prepared})
        items = [call.get(side) for call in calls or [] if isinstance(call, dict)]
    elif asking.server.can("typeHierarchyProvider") and engine != "clangd":
        prepared = await _prepared(asking, "textDocument/prepareTypeHierarchy", input)
        items = await asking.follow(_TYPES[input.kind], {"item": prepared}) or []
    else:
        # Composed of what every server has: uses in the headers of classes, and definitions of the names in a header.
        engine += " and tree-sitter"
        items = await (_subtypes(asking, input) if input.kind == "subtypes" else _supertypes(asking, input))
    found = await run_sync(_relatives, asking, items)
    ctx.note(items=len(found))
    return Hierarchy(items=found[:_MOST], engine=engine, truncated=len(found) > _MOST)


async def _prepared(asking: Asking, method: str, at: At) -> Any:
    found = await asking.ask_at(method, at)
    if not isinstance(found, list) or not found:
        raise NotFound(f"{asking.engine} knows no function or class at this place.")
    return found[0]


def _relatives(asking: Asking, items: list[Any]) -> list[Relative]:
    found: list[Relative] = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("uri"), str):
            continue
        span = item.get("selectionRange") or item.get("range") or {}
        spot = asking.places.spot(item["uri"], position_from(span.get("start")))
        if spot is not None:
            found.append(_relative(str(item.get("name", "")), spot))
    return found


def _relative(name: str, spot: Spot) -> Relative:
    return Relative(name=name, path=spot.path, line=spot.line, column=spot.column, text=spot.text)


async def _subtypes(asking: Asking, at: At) -> list[Any]:
    """Classes whose header uses the class: its references that stand between a class's name and its body."""
    asking.need("referencesProvider", "the uses of a name")
    params = {"context": {"includeDeclaration": False}}
    answer = await asking.ask_at("textDocument/references", at, params, whole=True)
    found: list[Any] = []
    for spot in await asking.spots(answer):
        if spot.rooted is None:
            continue
        lines = await run_sync(asking.places.lines, spot.rooted)
        for symbol in await _classes(asking, spot):
            header = _header(lines, symbol) if lines is not None else []
            if any(line == spot.line and start < spot.column <= end for line, start, end in header):
                item = {
                    "name": symbol.name,
                    "uri": _uri(asking, spot),
                    "range": _start(symbol.line - 1, header[0][1] - len(symbol.name)),
                }
                found += [item] if item not in found else []
    return found


async def _supertypes(asking: Asking, at: At) -> list[Any]:
    """Definitions of the names in the class's header that are classes."""
    document = await asking.server.document(asking.path)
    defined = await asking.defined(at.symbol) if at.line is None and at.symbol else None
    place = position_in(document.text, at, defined)
    lines = Lines(document.text)
    here = Spot(asking.path.shown, place.line + 1, place.character + 1, "", rooted=asking.path)
    symbol = next((one for one in await _classes(asking, here) if one.line == place.line + 1), None)
    if symbol is None:
        raise NotFound("No class begins at this place.")
    found: list[Any] = []
    for line, start, end in _header(lines, symbol):
        for column, name in _names(lines.line(line - 1), start, end):
            answer = await asking.ask_at("textDocument/definition", At(line=line, column=column + 1))
            for spot in await asking.spots(answer):
                if spot.is_outside:
                    item = {"name": name, "uri": f"file://{spot.path}", "range": _start(spot.line - 1, spot.column - 1)}
                elif any(one.line == spot.line for one in await _classes(asking, spot)):
                    item = {"name": name, "uri": _uri(asking, spot), "range": _start(spot.line - 1, spot.column - 1)}
                else:
                    continue
                found += [item] if item not in found else []
    return found


async def _classes(asking: Asking, spot: Spot) -> list[Symbol]:
    """The classes of a place's file, by tree-sitter."""
    if spot.rooted is None:
        return []
    try:
        outline = await asking.ctx.use(Symbols).outline(spot.rooted)
    except LinkError:
        return []
    return [symbol for _, symbol in outline.symbols if symbol.kind in _CLASSES]


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


def _names(line: str, start: int, end: int) -> list[tuple[int, str]]:
    return [(start + each.start(), each.group()) for each in re.finditer(r"[^\W\d]\w*(?!\w*\s*=)", line[start:end])]


def _uri(asking: Asking, spot: Spot) -> str:
    assert spot.rooted is not None, "only places inside the root are passed here"
    return uri_of("/".join((asking.server.root, *spot.rooted.parts)))


def _start(line: int, column: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": column}}
