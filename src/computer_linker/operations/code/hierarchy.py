"""code.hierarchy: callers and callees of a function, base and derived types of a class."""

from typing import Annotated, Any, Literal

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.errors import NotFound
from computer_linker.operations.code import relatives
from computer_linker.operations.code.asking import Asking, At, name_at, position_in
from computer_linker.operations.code.by_name import ENGINE, asking_or_none, name_in
from computer_linker.operations.code.relatives import Named
from computer_linker.providers.language.answers import Spot
from computer_linker.providers.language.text import position_from
from computer_linker.providers.language.wire import METHOD_NOT_FOUND, ServerError
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_CALLS = {"callers": ("callHierarchy/incomingCalls", "from"), "callees": ("callHierarchy/outgoingCalls", "to")}
_TYPES = {"supertypes": "typeHierarchy/supertypes", "subtypes": "typeHierarchy/subtypes"}
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
    did="looked up callers or types in",
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
    asking = await asking_or_none(ctx, target)
    if asking is None:
        path, name = await name_in(ctx, target, input)
        found, engine = await relatives.by_name(ctx, path, name, input.kind), ENGINE
    elif input.kind in _CALLS:
        asking.need("callHierarchyProvider", "callers and callees")
        method, side = _CALLS[input.kind]
        prepared = await _prepared(asking, "textDocument/prepareCallHierarchy", input)
        calls = await asking.follow(method, {"item": prepared})
        items = [call.get(side) for call in calls or [] if isinstance(call, dict)]
        found, engine = await run_sync(_named, asking, items), asking.engine
    elif (own := await _own_types(asking, input)) is not None:
        found, engine = own, asking.engine
    else:
        # Composed of what every server has: uses in the headers of classes, and definitions of the names in a header.
        found, engine = await _types(asking, input), f"{asking.engine} and {ENGINE}"
    ctx.note(items=len(found))
    return Hierarchy(items=[_relative(*each) for each in found[:_MOST]], engine=engine, truncated=len(found) > _MOST)


async def _prepared(asking: Asking, method: str, at: At) -> Any:
    found = await asking.ask_at(method, at)
    if not isinstance(found, list) or not found:
        raise NotFound(f"{asking.engine} knows no function or class at this place.")
    return found[0]


def _named(asking: Asking, items: list[Any]) -> list[Named]:
    found: list[Named] = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("uri"), str):
            continue
        span = item.get("selectionRange") or item.get("range") or {}
        spot = asking.places.spot(item["uri"], position_from(span.get("start")))
        if spot is not None:
            found.append((str(item.get("name", "")), spot))
    return found


async def _own_types(asking: Asking, input: HierarchyInput) -> list[Named] | None:
    """The server's own answer; None from one that has none, or as clangd 14 an older form of it under the same name."""
    if not asking.server.can("typeHierarchyProvider"):
        return None
    try:
        prepared = await _prepared(asking, "textDocument/prepareTypeHierarchy", input)
    except ServerError as error:
        if error.number != METHOD_NOT_FOUND:
            raise
        return None
    return await run_sync(_named, asking, await asking.follow(_TYPES[input.kind], {"item": prepared}) or [])


async def _types(asking: Asking, input: HierarchyInput) -> list[Named]:
    asking.need("referencesProvider", "the uses of a name")
    if input.kind == "subtypes":
        params = {"context": {"includeDeclaration": False}}
        answer = await asking.ask_at("textDocument/references", input, params, whole=True)
        return await relatives.subtypes(asking.ctx, await asking.spots(answer))

    async def resolve(line: int, column: int, name: str) -> list[Named]:
        answer = await asking.ask_at("textDocument/definition", At(line=line, column=column))
        return [(name, spot) for spot in await asking.spots(answer)]

    document = await asking.server.document(asking.path)
    defined = await asking.defined(input.symbol) if input.line is None and input.symbol else None
    line = position_in(document.text, input, defined).line + 1
    return await relatives.supertypes(asking.ctx, asking.path, name_at(document.text, input), resolve, line)


def _relative(name: str, spot: Spot) -> Relative:
    return Relative(name=name, path=spot.path, line=spot.line, column=spot.column, text=spot.text)
