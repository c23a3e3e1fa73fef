"""code.search_symbols: definitions by name."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.errors import InvalidRequest
from computer_linker.providers.held import guarded, hold_folder
from computer_linker.providers.search.engine import Search
from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.languages import BY_NAME
from computer_linker.providers.symbols.symbols import FoundSymbols, SymbolQuery, Symbols
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class SymbolInput(Model):
    query: Annotated[
        str,
        Field(min_length=1, max_length=200, description="A part of the name; case counts if it has a capital letter."),
    ]


class SymbolOptions(Model):
    kind: Annotated[str | None, Field(max_length=32, description="function, method, class, struct, interface, ...")] = (
        None
    )
    language: Annotated[str | None, Field(max_length=32, description="Only files in this language.")] = None
    max_results: Annotated[int, Field(gt=0, le=1000)] = 50


class SymbolEntry(TypedDict):
    name: str
    kind: str
    path: str
    line: int
    endLine: int
    container: str | None
    signature: str


class SymbolsFound(Model):
    symbols: list[SymbolEntry]
    engine: str
    truncated: bool


@operation(
    "code.search_symbols",
    did="searched symbols in",
    needs={Capability.SEARCH_READ},
    effect=Effect.OBSERVE,
    text=shapes.SYMBOLS,
    examples=[
        Example(
            "Where a class is defined.", {"target": ".", "input": {"query": "Parser"}, "options": {"kind": "class"}}
        )
    ],
)
async def code_search_symbols(
    ctx: Context, input: SymbolInput, target: str = ".", options: SymbolOptions = SymbolOptions()
) -> SymbolsFound:
    """Find definitions by name below a folder: whole names first, then beginnings, then parts."""
    if any(char in input.query for char in "\0\n\r"):
        raise InvalidRequest("A query is a part of a name.", field="query")
    if options.language is not None and options.language not in BY_NAME:
        raise InvalidRequest("There is no such language.", field="language", languages=sorted(BY_NAME))
    query = SymbolQuery(input.query, options.kind, options.language, options.max_results)
    async with hold_folder(guarded(ctx.path(target), ctx.services.home)) as folder:
        found = await ctx.use(Symbols).search(ctx.use(Search), folder, query)
        prefix = folder.path.base
    warn_of(ctx, found)
    ctx.note(symbols=len(found.symbols))
    entries = [entry_of(prefix + path, symbol) for path, symbol in found.symbols]
    return SymbolsFound(symbols=entries, engine="tree-sitter", truncated=found.is_cut)


def entry_of(path: str, symbol: Symbol) -> SymbolEntry:
    """A symbol in its wire form."""
    return SymbolEntry(
        name=symbol.name,
        kind=symbol.kind,
        path=path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
        line=symbol.line,
        endLine=symbol.end_line,
        container=symbol.container or None,
        signature=symbol.signature,
    )


def warn_of(ctx: Context, found: FoundSymbols) -> None:
    """Warn of files that could not be searched."""
    if found.missing:
        ctx.warn(f"No grammar is installed for {', '.join(sorted(found.missing))}; those files were left out.")
    if found.failed:
        ctx.warn(f"{found.failed} files could not be parsed and were left out.")
