"""code.outline: the definitions of one file."""

from computer_linker.operations.code.search_symbols import SymbolEntry, entry_of, warn_of
from computer_linker.providers.held import guarded
from computer_linker.providers.symbols.symbols import Symbols
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class Outline(Model):
    symbols: list[SymbolEntry]


@operation(
    "code.outline",
    did="outlined",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.SYMBOLS,
    examples=[Example("What a file defines.", {"target": "src/app.py"}, runs=False)],
)
async def code_outline(ctx: Context, target: str) -> Outline:
    """List every definition of a source file in order, with its lines, container and signature."""
    found = await ctx.use(Symbols).outline(guarded(ctx.path(target), ctx.services.home))
    warn_of(ctx, found)
    ctx.note(symbols=len(found.symbols))
    return Outline(symbols=[entry_of(path, symbol) for path, symbol in found.symbols])
