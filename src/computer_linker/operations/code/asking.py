"""What the operations of language servers share: addresses in a file, the server's answer, and its places on the wire."""

from collections.abc import Sequence
from typing import Annotated, Any

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.errors import InvalidRequest, NotFound, ProviderUnavailable
from computer_linker.model.paths import RootedPath
from computer_linker.providers.held import guarded
from computer_linker.providers.language.answers import Places, Spot
from computer_linker.providers.language.pool import LanguageServers
from computer_linker.providers.language.server import Document, Server
from computer_linker.providers.language.text import Lines, Position, occurrences, position_from, units, word_at
from computer_linker.providers.language.uris import uri_of
from computer_linker.registry import Context, Model

_FEW = 200
NO_SERVER = frozenset({"missing", "sandbox", "start", "crashed"})
"""Reasons for which the operations that can answer with tree-sitter do."""


class At(Model):
    symbol: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Its name: on `line`, or else where the file defines it (`Class.method` too).",
        ),
    ] = None
    line: Annotated[int | None, Field(gt=0, description="From 1.")] = None
    column: Annotated[int | None, Field(gt=0, description="In characters, from 1; not needed beside `symbol`.")] = None


class LocationEntry(TypedDict):
    path: str
    line: int
    column: int
    text: str


def entry_of(spot: Spot) -> LocationEntry:
    return LocationEntry(path=spot.path, line=spot.line, column=spot.column, text=spot.text)


class Asking:
    """A file, its server, and a position in it."""

    def __init__(self, ctx: Context, target: str, path: RootedPath, server: Server) -> None:
        self.ctx, self.target, self.path, self.server = ctx, target, path, server
        self.places = Places(RootedPath(path.root, (), path.rules, path.prefix), server)
        self.uri = uri_of(f"{server.root}/{'/'.join(path.parts)}")

    @classmethod
    async def of(cls, ctx: Context, target: str) -> "Asking":
        """The server for a file. Raises ProviderUnavailable, with how to install one, where there is none."""
        path = guarded(ctx.path(target), ctx.services.home)
        servers = ctx.use(LanguageServers)
        server = servers.found(path)
        if server is None or not server.is_unchanged(path.parts):
            # A missing or closed file is an answer of its own, with or without a server.
            await ctx.computer.files.stat(path)
            server = await servers.server(path)
        ctx.note(engine=server.kind.name)
        return cls(ctx, target, path, server)

    @property
    def engine(self) -> str:
        return self.server.kind.name

    def need(self, ability: str, what: str) -> None:
        """Raise where the server lacks an ability."""
        if not self.server.can(ability):
            raise ProviderUnavailable(f"{self.engine} does not offer {what}.", reason="ability", engine=self.engine)

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Ask about this file."""
        document = {"textDocument": {"uri": self.uri}, **(params or {})}
        answer, _ = await self.server.ask(method, lambda _: document, [self.path])
        return answer

    async def ask_at(self, method: str, at: At, params: dict[str, Any] | None = None, *, whole: bool = False) -> Any:
        """Ask about a position, which is found in the text that the server has. `whole`: the answer may lie in any file."""
        defined = await self.defined(at.symbol) if at.line is None and at.symbol is not None else None

        def build(documents: Sequence[Document]) -> dict[str, Any]:
            position = position_in(documents[0].text, at, defined)
            return {"textDocument": {"uri": self.uri}, "position": position.to_wire(), **(params or {})}

        answer, _ = await self.server.ask(method, build, [self.path], whole=whole)
        return answer

    async def follow(self, method: str, item: Any) -> Any:
        """Ask about an item of an earlier answer."""
        answer, _ = await self.server.ask(method, lambda _: item, [self.path], whole=True)
        return answer

    async def spots(self, locations: Any) -> list[Spot]:
        """The places of an answer that this caller may see."""
        listed = locations if isinstance(locations, list) else [] if locations is None else [locations]
        is_known = len(listed) < _FEW and self.places.is_known(listed)
        found = self.places.spots(listed) if is_known else await run_sync(self.places.spots, listed)
        if self.places.closed:
            self.ctx.warn(f"{self.places.closed} places in files that this scope does not open were left out.")
        return found

    async def defined(self, name: str) -> Position | None:
        """Where the file defines a name, by the server's own outline."""
        if not self.server.can("documentSymbolProvider"):
            return None
        symbols = await self.ask("textDocument/documentSymbol")
        return _found(symbols if isinstance(symbols, list) else [], name.split("."), ())


def _found(symbols: list[Any], wanted: list[str], above: tuple[str, ...]) -> Position | None:
    for symbol in symbols:
        if not isinstance(symbol, dict):
            continue
        name = str(symbol.get("name", "")).split("(")[0]
        names = (*above, *([symbol["containerName"]] if symbol.get("containerName") else []), name)
        if list(names[-len(wanted) :]) == wanted:
            span = symbol.get("selectionRange") or (symbol.get("location") or {}).get("range") or {}
            return position_from(span.get("start"))
        inner = _found(symbol.get("children") or [], wanted, (*above, name))
        if inner is not None:
            return inner
    return None


def position_in(text: str, at: At, defined: Position | None = None) -> Position:
    """The position that a request names. Raises when the text has no such name there."""
    lines = Lines(text)
    if at.line is None:
        if at.symbol is None:
            raise InvalidRequest("Name the place: `symbol`, or `line` with `symbol` or `column`.", field="input.symbol")
        last = at.symbol.rpartition(".")[2]
        if defined is not None:
            # Some servers name the whole definition, so the name is looked for from its start.
            columns = occurrences(lines.line(defined.line), last)
            first = next((each for each in columns if units(lines.line(defined.line), each) >= defined.character), None)
            return defined if first is None else Position(defined.line, units(lines.line(defined.line), first))
        for number in range(len(lines)):
            if columns := occurrences(lines.line(number), last):
                return Position(number, units(lines.line(number), columns[0]))
        raise NotFound(f"The file has no {at.symbol[:80]!r}.", symbol=at.symbol[:80])
    line = lines.line(at.line - 1)
    if at.line > len(lines):
        raise InvalidRequest(f"The file has {len(lines)} lines.", field="input.line", lines=len(lines))
    if at.symbol is None:
        if at.column is None:
            raise InvalidRequest("Beside `line` give `symbol` or `column`.", field="input.symbol")
        return Position(at.line - 1, units(line, at.column - 1))
    columns = occurrences(line, at.symbol.rpartition(".")[2])
    if not columns:
        raise NotFound(f"Line {at.line} has no {at.symbol[:80]!r}: {line.strip()[:120]}", symbol=at.symbol[:80])
    column = min(columns, key=lambda each: abs(each - (at.column or 1) + 1))
    return Position(at.line - 1, units(line, column))


def name_at(text: str, at: At) -> str:
    """The name that a request means, for engines that look names up."""
    if at.symbol is not None:
        return at.symbol.rpartition(".")[2]
    position = position_in(text, at)
    name = word_at(Lines(text).line(position.line), (at.column or 1) - 1)
    if not name:
        raise NotFound("There is no name at this place.")
    return name
