"""code.definition: where a name is defined."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.operations.code.asking import At, LocationEntry, entry_of
from computer_linker.operations.code.by_name import ENGINE, asking_or_none, definitions, name_in, spot_of
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_METHODS = {
    "definition": ("textDocument/definition", "definitionProvider"),
    "type": ("textDocument/typeDefinition", "typeDefinitionProvider"),
    "implementation": ("textDocument/implementation", "implementationProvider"),
}


class DefinitionInput(At):
    of: Annotated[
        Literal["definition", "type", "implementation"],
        Field(description="The name's own, its type's, or those of it."),
    ] = "definition"


class Definitions(Model):
    locations: Annotated[list[LocationEntry], Field(description="A place outside the root has no text.")]
    engine: str


@operation(
    "code.definition",
    did="looked up a definition in",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.LOCATIONS,
    examples=[
        Example(
            "Where a called function is.",
            {"target": "src/main.py", "input": {"line": 5, "symbol": "greet"}},
            runs=False,
        )
    ],
)
async def code_definition(ctx: Context, target: str, input: DefinitionInput) -> Definitions:
    """Find where the name at a place is defined, by a language server; by tree-sitter where none is installed."""
    asking = await asking_or_none(ctx, target)
    if asking is None:
        path, name = await name_in(ctx, target, input)
        found = [spot_of(*each) for each in await definitions(ctx, path, name)]
        return Definitions(locations=[entry_of(spot) for spot in found], engine=ENGINE)
    method, ability = _METHODS[input.of]
    asking.need(ability, f"the {input.of} of a name")
    spots = await asking.spots(await asking.ask_at(method, input))
    ctx.note(locations=len(spots))
    return Definitions(locations=[entry_of(spot) for spot in spots], engine=asking.engine)
