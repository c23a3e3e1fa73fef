"""What a client may mean by a path that leads to nothing: `path:line`, or a file of that name in another folder."""

import re
from contextlib import suppress
from typing import Any

from anyio import move_on_after

from computer_linker.errors import LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.providers.held import guarded, hold_folder
from computer_linker.providers.search.engine import Search
from computer_linker.providers.search.query import Breadth, NameQuery, check_glob, escaped, shown
from computer_linker.registry import Context

_WITH_LINE = re.compile(r"(.+?):(\d{1,7})(?::\d{1,7})?:?")
_MOST_LOOKED_AT, _MOST_SHOWN = 100, 3
_TIME_S = 0.5


async def near(ctx: Context, target: str) -> dict[str, Any]:
    """Details for the error of a path that does not exist: the request that was meant, or up to three similar paths.

    Nothing where the answer would take long or is not clear.
    """
    with move_on_after(_TIME_S), suppress(LinkError):
        if (place := _WITH_LINE.fullmatch(target)) is not None:
            await ctx.computer.files.stat(ctx.path(place[1]))
            request = {"scope": ctx.scope.id, "op": ctx.op, "target": place[1], "options": {"startLine": int(place[2])}}
            return {"corrected": request}
        found = await _of_that_name(ctx, ctx.path(target))
        return {"similar": found} if found else {}
    return {}


async def _of_that_name(ctx: Context, path: RootedPath) -> list[str]:
    """Visible files of this name below the root, those first whose path ends as the one that was asked for."""
    pattern = f"**/{escaped(path.name)}"
    check_glob(pattern)
    root = RootedPath(path.root, (), path.rules, path.prefix)
    async with hold_folder(guarded(root, ctx.services.home)) as folder:
        page = await ctx.use(Search).names(folder, NameQuery(Breadth(pattern)), None, _MOST_LOOKED_AT)
        found = [folder.path.base + shown(each) for each in page.paths]
    asked = "/".join(path.parts)
    return sorted(found, key=lambda one: (not one.endswith(f"/{asked}"), one.count("/"), one))[:_MOST_SHOWN]
