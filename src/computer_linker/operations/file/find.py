"""file.find: files by glob."""

import re
from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.operations.file.inside import documents_holding
from computer_linker.providers.held import Held, guarded, hold_folder
from computer_linker.providers.search.engine import ENGINE, Search
from computer_linker.providers.search.query import Breadth, NameQuery, check_glob, from_cursor, shown, to_cursor
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_MOST = 10_000


class FindInput(Model):
    pattern: Annotated[
        str,
        Field(
            min_length=1,
            max_length=512,
            description="A glob: `*.py` anywhere below the folder, `src/**/*.ts` from it; `!` in front excludes.",
        ),
    ]


class FindOptions(Model):
    max_results: Annotated[
        int, Field(gt=0, description="Files in one answer; more than 10000 are not given at once.")
    ] = 200
    include_hidden: Annotated[bool, Field(description="Also names that start with a dot.")] = False
    gitignore: Annotated[bool, Field(description="Leave out what .gitignore files leave out.")] = True
    containing: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=1000,
            description="Only files that hold this text, whatever its case; PDF, Office, OpenDocument and EPUB files by their "
            "text. Looks at the first 10000 files.",
        ),
    ] = None
    cursor: Annotated[str | None, Field(max_length=16_384, description="`nextCursor` of the answer before.")] = None


class FoundFiles(Model):
    files: Annotated[list[str], Field(description="Paths from the scope's root, in order.")]
    engine: str
    truncated: Annotated[bool, Field(description="True when there are more files than were returned.")]
    next_cursor: str | None


@operation(
    "file.find",
    did="looked for files in",
    needs={Capability.SEARCH_READ},
    effect=Effect.OBSERVE,
    text=shapes.FILES,
    examples=[Example("All Markdown files.", {"target": ".", "input": {"pattern": "*.md"}})],
)
async def file_find(
    ctx: Context, input: FindInput, target: str = ".", options: FindOptions = FindOptions()
) -> FoundFiles:
    """Find files by glob below a folder. Links are not followed; sensitive files are left out."""
    check_glob(input.pattern)
    query = NameQuery(Breadth(input.pattern, options.include_hidden, options.gitignore))
    after = from_cursor(options.cursor, query.digest())
    async with hold_folder(guarded(ctx.path(target), ctx.services.home)) as folder:
        if options.containing is not None:
            return await _containing(ctx, folder, query, options, options.containing)
        page = await ctx.use(Search).names(folder, query, after, min(options.max_results, _MOST))
        prefix = folder.path.base
    if not page.paths and after is None and re.fullmatch(r"[^*?\[{/]+", input.pattern):
        ctx.warn(f"A pattern is for whole names; `*{input.pattern}*` finds names that contain it.")
    ctx.note(files=len(page.paths), engine=ENGINE)
    return FoundFiles(
        files=[prefix + shown(path) for path in page.paths],
        engine=ENGINE,
        truncated=page.next_position is not None,
        next_cursor=None if page.next_position is None else to_cursor(page.next_position, query.digest()),
    )


async def _containing(ctx: Context, folder: Held, query: NameQuery, options: FindOptions, text: str) -> FoundFiles:
    """The files whose name fits and whose content holds the text. `truncated` when some are not in it."""
    if options.cursor is not None or "\n" in text:
        raise InvalidRequest("`containing` is one line of text, and its answer has no pages.", field="options")
    search = ctx.use(Search)
    page = await search.names(folder, query, None, _MOST)
    holding, more = await search.holding(folder, text, ignore_case=True, most=2 * _MOST)
    inside, is_whole = await documents_holding(ctx, folder, page.paths, text)
    wanted = set(holding) | inside
    found = [path for path in page.paths if path in wanted]
    is_cut = more or not is_whole or page.next_position is not None or len(found) > options.max_results
    if not is_whole:
        ctx.warn("Not every document was decoded yet; the same call again goes on from there.")
    ctx.note(files=len(found), engine=ENGINE)
    shown_ones = [folder.path.base + shown(path) for path in found[: min(options.max_results, _MOST)]]
    return FoundFiles(files=shown_ones, engine=ENGINE, truncated=is_cut, next_cursor=None)
