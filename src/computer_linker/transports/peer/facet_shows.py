"""What a person sees of a facet call of a paired machine before they say yes: points, ids and bytes say nothing to them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from computer_linker.computer.facets.accessibility import ElementId
from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.facets.files import Change, Copy, MakeFolder, Move, Remove, Restore, Write
from computer_linker.computer.remote.methods import Method
from computer_linker.computer.remote.process_wire import FarLaunch
from computer_linker.errors import InvalidRequest, LimitExceeded, NotFound
from computer_linker.operations.command.showing import about_command
from computer_linker.operations.desktop.showing import about, show_window
from computer_linker.operations.file.showing import show_files
from computer_linker.policy.confirm import About
from computer_linker.policy.digest import digest_of_parts
from computer_linker.providers.fingerprints import Fingerprints
from computer_linker.providers.ui.apps_shown import seen_app, seen_start
from computer_linker.providers.ui.shown import Seen, seen_at, seen_at_focus
from computer_linker.registry.context import Context

Shows = Callable[[Context], Awaitable[About]]
Changes = Callable[[Context], list[Change]]
Difference = tuple[str, bytes | None, bytes | None]

_MAX_TEXT = 4000
_MAX_FILE = 2_000_000


def shows_for(method: Method, changes: Changes) -> Shows | None:
    """What shows a call of this method; None where its arguments say it all. `changes` reads the changes of a batch."""
    if method.facet == "files":
        return partial(_changes, changes) if method.attribute == "change" else None
    if method.facet == "processes":
        return _process if method.attribute == "spawn" else None
    shows = {
        "pointer": _pointer, "keyboard": _keyboard, "accessibility": _control, "windows": _window, "apps": _app,
        "clipboard": _clip,
    }.get(method.facet)  # fmt: skip
    return None if shows is None else partial(_given, shows, method)


async def _given(
    shows: Callable[[Context, Method, dict[str, Any]], Awaitable[About]], method: Method, ctx: Context
) -> About:
    return await shows(ctx, method, method.from_params(ctx.cargo.params))


async def _pointer(ctx: Context, method: Method, given: dict[str, Any]) -> About:
    """The window and the element at the point; of a drag, at both of its ends."""
    if method.attribute != "drag":
        return about(ctx, await seen_at(ctx.computer, given["to"] if "to" in given else given["at"]))
    path = given["path"]
    if not path:
        raise InvalidRequest("A drag has a path.", field="path")
    first, last = await seen_at(ctx.computer, path[0]), await seen_at(ctx.computer, path[-1])
    first.lines += ["dragged to:", *last.lines]
    first.holds |= {f"end {name}": digest for name, digest in last.holds.items()}
    return about(ctx, first)


async def _keyboard(ctx: Context, method: Method, given: dict[str, Any]) -> About:
    seen = await seen_at_focus(ctx.computer)
    if "text" in given:
        _add_text(seen, "types", given["text"])
    else:
        seen.lines.append(f"presses {'+'.join(given['keys'])}")
    return about(ctx, seen)


async def _control(ctx: Context, method: Method, given: dict[str, Any]) -> About:
    """The element of an id, its window, and what would be put into it."""
    wanted: ElementId = given["element_id"]
    seen, accessibility = Seen(), ctx.computer.accessibility
    seen.add_element(await accessibility.element(wanted))
    apps = await accessibility.applications()
    app = next((one for one in apps if one.id == wanted.app), None)
    above = await accessibility.ancestors(wanted)
    title = above[-1].name if above else ""
    seen.lines.append(f'in the window "{title}" of {app.name if app else wanted.app}')
    seen.holds["window"] = digest_of_parts(title, wanted.app, *(() if app is None else (app.name, str(app.pid))))
    if method.attribute == "perform":
        names = await accessibility.actions(wanted)
        which = given.get("action", 0)
        name = names[which] if 0 <= which < len(names) else "none"
        seen.lines.append(f"does its action {name}")
        seen.holds["action"] = digest_of_parts(name)
    if "text" in given:
        _add_text(seen, "puts into it", given["text"])
    return about(ctx, seen)


async def _window(ctx: Context, method: Method, given: dict[str, Any]) -> About:
    return await show_window(ctx, given["window_id"])


async def _app(ctx: Context, method: Method, given: dict[str, Any]) -> About:
    excluded = ctx.scope.policy.excluded_applications
    is_start = method.attribute == "open"
    seen = await (
        seen_start(ctx.computer, given["app"], given.get("arguments", ()))
        if is_start
        else seen_app(ctx.computer, given["app"], excluded)
    )
    return About(tuple(seen.lines), seen.holds)


async def _clip(ctx: Context, method: Method, given: dict[str, Any]) -> About:
    clip: Clip = given["clip"]
    seen = Seen([f"puts {len(raw)} bytes of {kind} on the clipboard" for kind, raw in clip.forms.items()])
    if (text := clip.text) is not None:
        _add_text(seen, "as text", text)
    return About(tuple(seen.lines), seen.holds)


async def _process(ctx: Context) -> About:
    launch: FarLaunch = ctx.cargo.method.from_params(ctx.cargo.params)["launch"]
    return await about_command(ctx, list(launch.argv), ".")


async def _changes(changes_of: Changes, ctx: Context) -> About:
    """Each path with its change: the difference of what is written, what would go or be replaced by digest."""
    written: list[Difference] = []
    prints = Fingerprints(ctx.computer.files)
    for change in changes_of(ctx):
        difference = await _difference(ctx, change) if isinstance(change, Write) else None
        if difference is not None:
            written.append(difference)
            continue
        await prints.add(change.path, _verb(change))
        if isinstance(change, Move | Copy):
            await prints.add(change.destination, "to")
    shown = await show_files(written)
    return About((*shown.lines, *prints.lines), {**shown.holds, **prints.holds})


async def _difference(ctx: Context, change: Write) -> Difference | None:
    """A write by what is there now and then; None for what is too large to compare."""
    if not isinstance(change.content, bytes) or len(change.content) > _MAX_FILE:
        return None
    try:
        before: bytes | None = (await ctx.computer.files.read_whole(change.path, _MAX_FILE))[0]
    except NotFound:
        before = None
    except LimitExceeded:
        return None
    return change.path.shown, before, (before or b"") + change.content if change.append else change.content


def _verb(change: Change) -> str:
    match change:
        case Move():
            return "moves"
        case Copy():
            return "copies"
        case Write():
            return "writes"
        case Restore():
            return "restores"
        case MakeFolder():
            return "makes the folder"
        case Remove():
            return "removes"


def _add_text(seen: Seen, says: str, text: str) -> None:
    left = len(text) - _MAX_TEXT
    seen.lines += [f"{says}:", *text[:_MAX_TEXT].split("\n")]
    if left > 0:
        seen.lines.append(f"… {left} more characters, which the exact request has")
