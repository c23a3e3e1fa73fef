"""code.format: a file in its language's usual layout."""

from typing import Annotated

from pydantic import Field

from computer_linker.operations.code.asking import Asking
from computer_linker.operations.code.edited import DryRun, Edited, change
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


class FormatOptions(DryRun):
    tab_size: Annotated[int, Field(gt=0, le=16)] = 4
    use_tabs: bool = False


@operation(
    "code.format",
    needs={Capability.FS_READ, Capability.FS_WRITE},
    effect=Effect.CHANGE,
    text=shapes.EDITED,
    shows="changes",
    destructive=True,
    examples=[Example("Lay a file out anew.", {"target": "src/main.cpp"}, runs=False)],
)
async def code_format(ctx: Context, target: str, options: FormatOptions = FormatOptions()) -> Edited:
    """Format a file by its language server. Some have no formatter, pyright among them: use the project's own command."""
    asking = await Asking.of(ctx, target)
    asking.need("documentFormattingProvider", "formatting; run the project's formatter with a command")
    layout = {"tabSize": options.tab_size, "insertSpaces": not options.use_tabs, "trimTrailingWhitespace": True}
    edits = await asking.ask("textDocument/formatting", {"options": layout})
    path = ctx.path(target, for_writing=True)
    return await change(asking, [(path, edits)] if isinstance(edits, list) and edits else [], dry_run=options.dry_run)
