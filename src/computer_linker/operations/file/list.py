"""file.list: the entries of one folder."""

import base64
from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import EntryField, ListedEntry
from computer_linker.errors import InvalidRequest
from computer_linker.model.base import ForModels
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_MAX_RESULTS = 20_000


class ListOptions(Model):
    max_results: Annotated[int, Field(gt=0, description="At most 20,000; more is lowered to that.")] = 1000
    include_hidden: Annotated[bool, Field(description="Also names that start with a dot.")] = True
    fields: Annotated[
        list[EntryField] | None,
        Field(description="What to answer of each beside its name; without size and modifiedAt no file is looked at."),
        ForModels(["name", "type"]),
    ] = None
    cursor: Annotated[str | None, Field(max_length=2048, description="`nextCursor` of the page before.")] = None


class Entries(Model):
    entries: Annotated[list[ListedEntry], Field(description="By name. Links are listed as links.")]
    truncated: bool
    next_cursor: str | None = None


@operation(
    "file.list",
    did="listed",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.ENTRIES,
    examples=[Example("List the scope's root.", {"target": ".", "options": {"maxResults": 100}})],
)
async def file_list(ctx: Context, target: str = ".", options: ListOptions = ListOptions()) -> Entries:
    """List one folder by name, in pages.

    Files that usually hold a secret are named (their content is never opened); names the scope's policy denies are left out.
    """
    listing = await ctx.computer.files.list_folder(
        ctx.path(target),
        max_results=min(options.max_results, _MAX_RESULTS),
        include_hidden=options.include_hidden,
        after=_name_of(options.cursor),
        fields=options.fields,
    )
    ctx.warnings.extend(listing.warnings)
    ctx.note(entries=len(listing.entries))
    return Entries.model_construct(
        entries=listing.entries,
        truncated=listing.next_name is not None,
        next_cursor=None if listing.next_name is None else _cursor_of(listing.next_name),
    )


def _cursor_of(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode("utf-8", "surrogateescape")).decode()


def _name_of(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        return base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode(
            "utf-8", "surrogateescape"
        )
    except ValueError:
        raise InvalidRequest("`cursor` must be the `nextCursor` of an earlier page.", field="options.cursor") from None
