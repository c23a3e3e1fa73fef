"""code.rename: give a name another one, everywhere it is used."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest, NotFound, ProviderUnavailable
from computer_linker.operations.code.asking import NO_SERVER, Asking, At
from computer_linker.operations.code.edited import DryRun, Edited, change
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


class RenameInput(At):
    new_name: Annotated[str, Field(min_length=1, max_length=200)]


@operation(
    "code.rename",
    did="renamed a symbol in",
    needs={Capability.FS_READ, Capability.FS_WRITE},
    effect=Effect.CHANGE,
    text=shapes.EDITED,
    shows="whole changes",
    destructive=True,
    examples=[
        Example(
            "Rename a function everywhere.",
            {"target": "src/greet.py", "input": {"symbol": "greet", "newName": "salute"}, "options": {"dryRun": True}},
            runs=False,
        )
    ],
)
async def code_rename(ctx: Context, target: str, input: RenameInput, options: DryRun = DryRun()) -> Edited:
    """Rename the name at a place in all files that use it: all of them, or nothing.

    Answers `conflict` when a file changed meanwhile. `file.undo` takes the whole rename back.
    """
    if any(not char.isprintable() or char.isspace() for char in input.new_name):
        raise InvalidRequest("A name has no spaces or control characters.", field="input.newName")
    try:
        asking = await Asking.of(ctx, target)
    except ProviderUnavailable as error:
        if error.details.get("reason") in NO_SERVER:
            error.details["instead"] = (
                "code.references finds the places by name; file.patch with replaceAll changes them."
            )
        raise
    asking.need("renameProvider", "renaming")
    answer = await asking.ask_at("textDocument/rename", input, {"newName": input.new_name}, whole=True)
    edits = asking.places.edits(answer, lambda name: ctx.path(name, for_writing=True))
    if not edits:
        raise NotFound(f"{asking.engine} cannot rename what stands at this place.")
    return await change(asking, edits, dry_run=options.dry_run)
