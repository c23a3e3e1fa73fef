"""Looks inside documents for file.search and file.find: their texts are searched by the same engine as files are."""

import time
from pathlib import Path

from computer_linker.providers.documents.texts import Texts, is_document_name, text_below
from computer_linker.providers.held import Held
from computer_linker.providers.search.engine import Search
from computer_linker.providers.search.query import (
    Hit,
    NameQuery,
    Position,
    TextPage,
    TextQuery,
    position_of,
)
from computer_linker.providers.search.visible import shared
from computer_linker.registry import Context
from computer_linker.system import os

MAX_DOCUMENTS = 10_000
MAX_DECODED = 200
"""Documents that one call decodes; the next call goes on with the cache of these."""
MAX_S = 20.0
_MARK = "--- "


async def names_of_documents(ctx: Context, folder: Held, query: NameQuery) -> list[bytes]:
    """The documents below a folder that the scope shows, in order."""
    page = await ctx.use(Search).names(folder, query, None, MAX_DOCUMENTS)
    found = [path for path in page.paths if is_document_name(path)]
    closed = shared(folder, set(found)).closed
    return [path for path in found if path not in closed]


class Budget:
    """Counts what one call decodes."""

    def __init__(self) -> None:
        self._until, self._left = time.monotonic() + MAX_S, MAX_DECODED

    def spend(self) -> None:
        self._left -= 1

    @property
    def is_spent(self) -> bool:
        return self._left <= 0 or time.monotonic() > self._until


async def search_documents(
    ctx: Context, folder: Held, query: TextQuery, after: Position | None, most: int
) -> tuple[TextPage, dict[tuple[bytes, int], str]]:
    """One page of matching lines in documents, and the page, sheet or slide of each."""
    texts, budget = ctx.use(Texts), Budget()
    hits: list[Hit] = []
    parts: dict[tuple[bytes, int], str] = {}
    last: Position | None = None
    for path in await names_of_documents(ctx, folder, NameQuery(query.breadth)):
        if after is not None and position_of(path, 1 << 62) <= after:
            continue
        if budget.is_spent:
            ctx.warn("Not every document was decoded yet; call again with `cursor` to go on.")
            return TextPage(hits, last), parts
        found = await text_below(texts, folder, path, ctx.scope.policy)
        if found is None:
            continue
        if found[1]:
            budget.spend()
        for hit in await _hits(ctx, found[0], path, query, most + 1):
            if after is not None and hit.position <= after:
                continue
            if len(hits) == most:
                return TextPage(hits, hits[-1].position), parts
            hits.append(hit)
            parts[path, hit.line] = _part(found[0], hit.line)
        last = position_of(path, 1 << 62)
    return TextPage(hits), parts


async def _hits(ctx: Context, text: Path, path: bytes, query: TextQuery, most: int) -> list[Hit]:
    fd = os.open(text, os.O_RDONLY | os.O_CLOEXEC)
    try:
        page = await ctx.use(Search).text(Held(fd, ctx.path("."), False), query, None, most)
    finally:
        os.close(fd)
    return [
        Hit(path, hit.line, hit.column, hit.preview, hit.before, hit.after)
        for hit in page.hits
        if not (hit.preview.startswith(_MARK) and hit.preview.endswith(" ---"))
    ]


def _part(text: Path, line: int) -> str:
    """The part that a line of a document's text belongs to, such as `page 3`."""
    part = ""
    with text.open(encoding="utf-8", errors="replace") as lines:
        for number, content in enumerate(lines, 1):
            if number > line:
                break
            if content.startswith(_MARK) and content.endswith(" ---\n"):
                part = content[len(_MARK) : -len(" ---\n")]
    return part


async def documents_holding(ctx: Context, folder: Held, paths: list[bytes], text: str) -> tuple[set[bytes], bool]:
    """The documents among `paths` whose text holds `text`, whatever its case, and whether all were looked into."""
    texts, budget, wanted = ctx.use(Texts), Budget(), text.casefold()
    found: set[bytes] = set()
    closed = shared(folder, {path for path in paths if is_document_name(path)}).closed
    for path in paths:
        if not is_document_name(path) or path in closed:
            continue
        if budget.is_spent:
            return found, False
        held = await text_below(texts, folder, path, ctx.scope.policy)
        if held is None:
            continue
        if held[1]:
            budget.spend()
        if wanted in held[0].read_text(encoding="utf-8", errors="replace").casefold():
            found.add(path)
    return found, True
