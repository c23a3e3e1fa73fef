"""code.references: where a name is used."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.operations.code.asking import At, LocationEntry, entry_of
from computer_linker.operations.code.by_name import asking_or_none, name_in, uses
from computer_linker.providers.language.answers import Spot
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class ReferencesOptions(Model):
    max_results: Annotated[int, Field(gt=0, le=1000)] = 100
    cursor: Annotated[str | None, Field(max_length=8192, description="`nextCursor` of the answer before.")] = None


class References(Model):
    locations: list[LocationEntry]
    total: int
    engine: str
    next_cursor: str | None


@operation(
    "code.references",
    did="looked up uses in",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.LOCATIONS,
    examples=[
        Example("Who uses a function.", {"target": "src/greet.py", "input": {"symbol": "greet"}}, runs=False),
    ],
)
async def code_references(
    ctx: Context, target: str, input: At, options: ReferencesOptions = ReferencesOptions()
) -> References:
    """Find every use of the name at a place in the whole root, its definition included."""
    asking = await asking_or_none(ctx, target)
    if asking is None:
        path, name = await name_in(ctx, target, input)
        return _page(await uses(ctx, path, name), options, "ripgrep")
    asking.need("referencesProvider", "the uses of a name")
    answer = await asking.ask_at(
        "textDocument/references", input, {"context": {"includeDeclaration": True}}, whole=True
    )
    found = answer if isinstance(answer, list) else []
    if not asking.server.kind.lists_definitions:
        defined = await asking.ask_at("textDocument/definition", input)
        found = [*found, *(defined if isinstance(defined, list) else [defined] if defined else [])]
    spots = await asking.spots(found)
    ctx.note(locations=len(spots))
    return _page(spots, options, asking.engine)


def _page(spots: list[Spot], options: ReferencesOptions, engine: str) -> References:
    left = spots
    if options.cursor is not None:
        path, _, rest = options.cursor.partition("\n")
        line, _, column = rest.partition(":")
        if not (line.isascii() and line.isdigit() and column.isascii() and column.isdigit() and len(rest) < 20):
            raise InvalidRequest("The cursor is not one of this operation.", field="options.cursor")
        left = [spot for spot in spots if (spot.path, spot.line, spot.column) > (path, int(line), int(column))]
    shown = left[: options.max_results]
    more = len(left) > len(shown)
    return References(
        locations=[entry_of(spot) for spot in shown],
        total=len(spots),
        engine=engine,
        next_cursor=f"{shown[-1].path}\n{shown[-1].line}:{shown[-1].column}" if more else None,
    )
