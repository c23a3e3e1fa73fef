"""code.symbols: the symbols of a file, or of a folder by name, as the language servers know them."""

from collections.abc import Iterator
from typing import Annotated, Any

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.errors import InvalidRequest, ProviderUnavailable
from computer_linker.model.paths import RootedPath
from computer_linker.operations.code.asking import NO_SERVER, Asking
from computer_linker.operations.code.by_name import ENGINE, asking_or_none
from computer_linker.operations.code.search_symbols import SymbolsFound, entry_of, warn_of
from computer_linker.providers.held import Held, guarded, hold, hold_folder
from computer_linker.providers.language.servers import Kind, kind_of
from computer_linker.providers.language.text import position_from
from computer_linker.providers.search.engine import Search
from computer_linker.providers.search.query import shown
from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.symbols import SymbolQuery, Symbols
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_KINDS = (
    "file module namespace package class method property field constructor enum interface function variable constant string "
    "number boolean array object key null member struct event operator type"
).split()
"""The protocol's kinds, from 1."""
_MAX_CANDIDATES = 20_000
_MOST = 1000
_OPENED = 8
"""Files of a language that are opened before its server is asked: some servers know only what is open and its project."""
Place = tuple[str, Symbol]
Listed = tuple[dict[str, Any], str, tuple[str, ...]]
"""A symbol as a server lists it, its file, and the names around it."""


class SymbolsInput(Model):
    query: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="A part of the name. A folder needs one."),
    ] = None


class SymbolsOptions(Model):
    max_results: Annotated[int, Field(gt=0, le=_MOST)] = 200


@operation(
    "code.symbols",
    did="looked up symbols in",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.SYMBOLS,
    examples=[
        Example("What a file defines, fields and constants too.", {"target": "src/app.py"}, runs=False),
        Example("Where a name is defined in a project.", {"target": ".", "input": {"query": "Parser"}}, runs=False),
    ],
)
async def code_symbols(
    ctx: Context, target: str = ".", input: SymbolsInput = SymbolsInput(), options: SymbolsOptions = SymbolsOptions()
) -> SymbolsFound:
    """List a file's symbols, or find a folder's by name, by language servers; by tree-sitter where none is installed."""
    path = guarded(ctx.path(target), ctx.services.home)
    async with hold(path) as found:
        is_folder = found.is_folder
    if is_folder:
        if input.query is None:
            raise InvalidRequest("For a folder give a part of the name.", field="input.query")
        places, engine, is_cut = await _of_folder(ctx, path, SymbolQuery(input.query, most=_MOST))
    else:
        places, engine = await _of_file(ctx, target, path)
        is_cut, wanted = False, SymbolQuery(input.query or "")
        places = [place for place in places if wanted.fits(place[1])]
    ctx.note(symbols=len(places))
    return SymbolsFound(
        symbols=[entry_of(*place) for place in places[: options.max_results]],
        engine=engine,
        truncated=is_cut or len(places) > options.max_results,
    )


async def _of_file(ctx: Context, target: str, path: RootedPath) -> tuple[list[Place], str]:
    asking = await asking_or_none(ctx, target)
    if asking is None or not asking.server.can("documentSymbolProvider"):
        outline = await ctx.use(Symbols).outline(path)
        warn_of(ctx, outline)
        return outline.symbols, ENGINE
    answer = await asking.ask("textDocument/documentSymbol")
    listed: list[Listed] = [(each, asking.uri, above) for each, above in _flat(answer, ())]
    return await run_sync(_places, asking, listed), asking.engine


async def _of_folder(ctx: Context, path: RootedPath, query: SymbolQuery) -> tuple[list[Place], str, bool]:
    """Ask the server of each language that has the text in a file; the other files are searched by tree-sitter."""
    async with hold_folder(path) as folder:
        files, is_cut = await ctx.use(Search).holding(
            folder, query.text, ignore_case=query.ignores_case, most=_MAX_CANDIDATES
        )
        by_kind: dict[str, list[RootedPath]] = {}
        for name in sorted(files):
            if (kind := kind_of(shown(name))) is not None:
                by_kind.setdefault(kind.name, []).append(path.child(*shown(name).split("/")))
        found: list[Place] = []
        served: list[str] = []
        for candidates in by_kind.values():
            asking = await _asking(ctx, candidates)
            if asking is not None:
                served.append(asking.engine)
                found += await _workspace(asking, path, candidates, query)
        rest = await _by_tree_sitter(ctx, folder, query, served)
    engines = [*served, *([ENGINE] if rest or not served else [])]
    ranked = sorted(found + rest, key=lambda place: (query.rank(place[1]), place[0], place[1].line))
    return ranked, " and ".join(engines), is_cut


async def _asking(ctx: Context, candidates: list[RootedPath]) -> Asking | None:
    """The server of these files; None, with a warning, where there is none that finds symbols by name."""
    try:
        asking = await Asking.of(ctx, candidates[0].shown)
    except ProviderUnavailable as error:
        if error.details.get("reason") not in NO_SERVER:
            raise
        ctx.warn(f"{error.message} Its files were searched by tree-sitter.")
        return None
    return asking if asking.server.can("workspaceSymbolProvider") else None


async def _workspace(
    asking: Asking, folder: RootedPath, candidates: list[RootedPath], query: SymbolQuery
) -> list[Place]:
    answer, _ = await asking.server.ask(
        "workspace/symbol", lambda _: {"query": query.text}, candidates[:_OPENED], whole=True
    )
    listed: list[Listed] = [
        (each, str((each.get("location") or {}).get("uri")), _containers(each))
        for each in (answer if isinstance(answer, list) else [])
        if isinstance(each, dict)
    ]
    found = await run_sync(_places, asking, listed)
    return [place for place in found if place[0].startswith(folder.base) and query.fits(place[1])]


async def _by_tree_sitter(ctx: Context, folder: Held, query: SymbolQuery, served: list[str]) -> list[Place]:
    def is_served(kind: Kind | None) -> bool:
        return kind is not None and kind.name in served

    found = await ctx.use(Symbols).search(ctx.use(Search), folder, query)
    warn_of(ctx, found)
    prefix = folder.path.base
    return [(prefix + path, symbol) for path, symbol in found.symbols if not is_served(kind_of(path))]


def _flat(symbols: Any, above: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Nested symbols in the order of the text, each with the names around it."""
    for symbol in symbols if isinstance(symbols, list) else []:
        if isinstance(symbol, dict):
            yield symbol, above or _containers(symbol)
            yield from _flat(symbol.get("children"), (*above, str(symbol.get("name", ""))))


def _containers(symbol: dict[str, Any]) -> tuple[str, ...]:
    return (str(symbol["containerName"]),) if symbol.get("containerName") else ()


def _places(asking: Asking, listed: list[Listed]) -> list[Place]:
    """Where a server's symbols are; those in files that the scope closes or outside the root are left out."""
    found: list[Place] = []
    for symbol, uri, above in listed:
        span = symbol.get("range") or (symbol.get("location") or {}).get("range") or {}
        spot = asking.places.spot(uri, position_from((symbol.get("selectionRange") or span).get("start")))
        if spot is None or spot.rooted is None:
            continue
        number = symbol.get("kind")
        kind = _KINDS[number - 1] if isinstance(number, int) and 0 < number <= len(_KINDS) else "symbol"
        end = position_from(span.get("end"))
        name = str(symbol.get("name", ""))[:200]
        end_line = max(spot.line, end.line + 1 - (end.character == 0))
        found.append((spot.path, Symbol(name, kind, spot.line, end_line, ".".join(above)[:200], spot.text)))
    return found
