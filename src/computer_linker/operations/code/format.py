"""code.format: a file in its language's usual layout."""

import re

from computer_linker.operations.code.asking import Asking
from computer_linker.operations.code.edited import DryRun, Edited, change
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


@operation(
    "code.format",
    did="formatted",
    needs={Capability.FS_READ, Capability.FS_WRITE},
    effect=Effect.CHANGE,
    text=shapes.EDITED,
    shows="whole changes",
    destructive=True,
    examples=[Example("Lay a file out anew.", {"target": "src/main.cpp"}, runs=False)],
)
async def code_format(ctx: Context, target: str, options: DryRun = DryRun()) -> Edited:
    """Format a file by its language server. Some have no formatter, pyright among them: use the project's own command."""
    asking = await Asking.of(ctx, target)
    asking.need("documentFormattingProvider", "formatting; run the project's formatter with a command")
    document = await asking.server.document(asking.path)
    layout = {**_indentation(document.text), "trimTrailingWhitespace": True}
    edits = await asking.ask("textDocument/formatting", {"options": layout})
    path = ctx.path(target, for_writing=True)
    return await change(asking, [(path, edits)] if isinstance(edits, list) and edits else [], dry_run=options.dry_run)


def _indentation(text: str) -> dict[str, int | bool]:
    """The file's own indentation: tabs where they lead more lines, else its smallest step of spaces."""
    leads = re.findall(r"^([ \t]+)\S", text, re.MULTILINE)
    tabs = sum(lead.startswith("\t") for lead in leads)
    if tabs > len(leads) - tabs:
        return {"tabSize": 4, "insertSpaces": False}
    widths = [len(lead) for lead in leads if not lead.startswith("\t") and len(lead) > 1]
    return {"tabSize": min(widths, default=4), "insertSpaces": True}
