"""file.search: lines that match a pattern."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.errors import InvalidRequest
from computer_linker.operations.file.inside import search_documents
from computer_linker.providers.held import Held, guarded, hold
from computer_linker.providers.search.engine import ENGINE, Search
from computer_linker.providers.search.query import (
    Breadth,
    Position,
    TextPage,
    TextQuery,
    check_glob,
    from_cursor,
    shown,
    to_cursor,
)
from computer_linker.providers.search.visible import shared
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_MOST = 1000


class SearchInput(Model):
    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4096,
            description="A regular expression of one line, or a text with `fixedStrings`.",
        ),
    ]


class SearchOptions(Model):
    glob: Annotated[str | None, Field(max_length=512, description="Only files that fit; `!` in front excludes.")] = None
    max_results: Annotated[
        int, Field(gt=0, description="Lines in one answer; more than 1000 are not given at once.")
    ] = 100
    ignore_case: bool = False
    fixed_strings: Annotated[bool, Field(description="Take the query literally.")] = False
    context_before: Annotated[int, Field(ge=0, le=20)] = 0
    context_after: Annotated[int, Field(ge=0, le=20)] = 0
    include_hidden: Annotated[bool, Field(description="Also names that start with a dot.")] = False
    gitignore: Annotated[bool, Field(description="Leave out what .gitignore files leave out.")] = True
    documents: Annotated[
        bool, Field(description="Search the texts of PDF, Office, OpenDocument and EPUB files below a folder instead.")
    ] = False
    cursor: Annotated[str | None, Field(max_length=16_384, description="`nextCursor` of the answer before.")] = None


class Match(TypedDict):
    path: str
    line: int
    column: int
    preview: str
    before: list[str]
    after: list[str]
    part: NotRequired[str]
    """Of a document: the page, sheet, slide or chapter. `line` counts in its text then."""


class Matches(Model):
    matches: Annotated[
        list[Match], Field(description="Matching lines by path and line; columns count characters from 1.")
    ]
    binary_files: Annotated[
        list[str], Field(description="Files that match but hold no text; their lines are not shown.")
    ]
    engine: str
    truncated: Annotated[bool, Field(description="True when there are more lines than were returned.")]
    next_cursor: str | None


@operation(
    "file.search",
    did="searched in",
    needs={Capability.SEARCH_READ},
    effect=Effect.OBSERVE,
    text=shapes.MATCHES,
    examples=[
        Example("Where something is said.", {"target": ".", "input": {"query": "TODO"}, "options": {"maxResults": 5}})
    ],
)
async def file_search(
    ctx: Context, input: SearchInput, target: str = ".", options: SearchOptions = SearchOptions()
) -> Matches:
    """Find lines by regular expression or text, in a folder or one file. Sensitive and special files are left out.

    With `documents` the texts of documents are searched, decoded in the sandbox and cached by digest; `part` names the page.
    """
    query = _query(input, options)
    after = from_cursor(options.cursor, _digest(query, options))
    async with hold(guarded(ctx.path(target), ctx.services.home)) as place:
        if options.documents:
            return await _in_documents(ctx, place, query, after, options)
        page = await ctx.use(Search).text(place, query, after, min(options.max_results, _MOST))
        ctx.note(matches=len(page.hits), engine=ENGINE)
        links = shared(place, {hit.path for hit in page.hits})
        page.hits = [hit for hit in page.hits if hit.path not in links.closed]
        if links.count:
            ctx.warn(
                f"{links.count} of these files are hardlinks: other names lead to them, and some may lie outside the scope."
            )
        return _answer(page, place, query)


def _digest(query: TextQuery, options: SearchOptions) -> str:
    return query.digest() + ("-documents" if options.documents else "")


async def _in_documents(
    ctx: Context, place: Held, query: TextQuery, after: Position | None, options: SearchOptions
) -> Matches:
    if not place.is_folder:
        raise InvalidRequest("`documents` searches below a folder; narrow it to one file by `glob`.", field="target")
    page, parts = await search_documents(ctx, place, query, after, min(options.max_results, _MOST))
    ctx.note(matches=len(page.hits), engine=ENGINE)
    answer = _answer(page, place, query)
    for match, hit in zip(answer.matches, page.hits, strict=True):
        if parts.get((hit.path, hit.line)):
            match["part"] = parts[hit.path, hit.line]
    cursor = None if page.next_position is None else to_cursor(page.next_position, _digest(query, options))
    return answer.model_copy(update={"next_cursor": cursor})


def _query(input: SearchInput, options: SearchOptions) -> TextQuery:
    if any(char in input.query for char in "\0\n\r"):
        raise InvalidRequest("A query is one line of text.", field="query")
    if options.glob is not None:
        check_glob(options.glob)
    return TextQuery(
        input.query,
        Breadth(options.glob, options.include_hidden, options.gitignore),
        options.ignore_case,
        options.fixed_strings,
        options.context_before,
        options.context_after,
    )


def _answer(page: TextPage, place: Held, query: TextQuery) -> Matches:
    def path_of(path: bytes) -> str:
        if not place.is_folder:
            return place.path.shown
        return place.path.base + shown(path)

    return Matches(
        matches=[
            Match(
                path=path_of(hit.path),
                line=hit.line,
                column=hit.column,
                preview=hit.preview,
                before=hit.before,
                after=hit.after,
            )
            for hit in page.hits
        ],
        binary_files=[path_of(path) for path in page.binary_files],
        engine=ENGINE,
        truncated=page.next_position is not None,
        next_cursor=None if page.next_position is None else to_cursor(page.next_position, query.digest()),
    )
