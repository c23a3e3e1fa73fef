"""Approval previews of facet calls: points, ids and bytes resolved to what a person recognises."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any

from computer_linker.approvals.request import Preview
from computer_linker.audit.command_line import command_preview
from computer_linker.computer.facets.accessibility import ElementId
from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.remote.methods import FarLaunch, Method
from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.operations.command.preview import about_command
from computer_linker.operations.desktop.preview import about, show_window
from computer_linker.operations.screen.lock import LOCKS
from computer_linker.policy.digest import digest_of_parts
from computer_linker.policy.visible_text import escaped
from computer_linker.providers.ui.shown import SeenElement, seen_app, seen_at, seen_at_focus, seen_start
from computer_linker.registry.context import Context
from computer_linker.registry.operation import Shows
from computer_linker.transports.peer.children import PeerChildren

_MAX_TEXT = 4000
_PNG = b"\x89PNG\r\n\x1a\n"
_TEXT_FORMS = frozenset({"utf8_string", "string", "text", "x-special/gnome-copied-files"})
"""Names of text forms that are no media types of text: targets of X11, and the copied files of file managers."""
_TO_PROCESS = {
    "feed": "types into", "signal": "sends the signal {name} to", "kill": "ends", "hang_up": "reads {name} no more of",
    "resize": "resizes the terminal of",
}  # fmt: skip


def shows_for(method: Method) -> Shows | None:
    """The preview function of this method; None where its arguments suffice."""
    if method.facet == "files":
        return "changes" if method.attribute == "change" else None
    if method.facet == "processes":
        return _process if method.attribute == "spawn" else partial(_given, _held_process, method)
    shows = {
        "pointer": _pointer, "keyboard": _keyboard, "accessibility": _control, "windows": _window, "apps": _app,
        "clipboard": _clip, "facts": _session,
    }.get(method.facet)  # fmt: skip
    return None if shows is None else partial(_given, shows, method)


async def _given(
    shows: Callable[[Context, Method, dict[str, Any]], Awaitable[Preview]], method: Method, ctx: Context
) -> Preview:
    return await shows(ctx, method, method.from_params(ctx.payload.params))


async def _pointer(ctx: Context, method: Method, given: dict[str, Any]) -> Preview:
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


async def _keyboard(ctx: Context, method: Method, given: dict[str, Any]) -> Preview:
    seen = await seen_at_focus(ctx.computer)
    if "text" in given:
        _add_text(seen, "types", given["text"])
    else:
        times = f" {count} times" if (count := given.get("count", 1)) != 1 else ""
        seen.lines.append(f"presses {'+'.join(given['keys'])}{times}")
    return about(ctx, seen)


async def _control(ctx: Context, method: Method, given: dict[str, Any]) -> Preview:
    """The element of an id, its window, and the value it would get."""
    wanted: ElementId = given["element_id"]
    seen, accessibility = SeenElement(), ctx.computer.accessibility
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


async def _window(ctx: Context, method: Method, given: dict[str, Any]) -> Preview:
    return await show_window(ctx, given["window_id"])


async def _app(ctx: Context, method: Method, given: dict[str, Any]) -> Preview:
    excluded = ctx.scope.policy.excluded_applications
    is_start = method.attribute == "open"
    seen = await (
        seen_start(ctx.computer, given["app"], given.get("arguments", ()))
        if is_start
        else seen_app(ctx.computer, given["app"], excluded)
    )
    return Preview(tuple(seen.lines), seen.holds)


async def _clip(ctx: Context, method: Method, given: dict[str, Any]) -> Preview:
    """Every form in full, because the exact request has digests alone, and each program chooses which form it pastes."""
    clip: Clip = given["clip"]
    lines: list[str] = []
    for kind, raw in clip.forms.items():
        lines += [f"puts {len(raw)} bytes of {kind} on the clipboard", *_form_lines(kind, raw)]
    return Preview(tuple(lines))


def _form_lines(kind: str, raw: bytes) -> list[str]:
    if kind == "image/png" and raw.startswith(_PNG):
        return [f"a picture, sha256 {sha256(raw).hexdigest()}"]
    name, _, charset = kind.lower().replace(" ", "").partition(";charset=")
    if (name.startswith("text/") or name in _TEXT_FORMS) and charset in ("", "utf-8", "us-ascii"):
        with suppress(UnicodeDecodeError):
            return ["as text:", *raw.decode("utf-8").split("\n")]
    raise PermissionDenied(
        f"The clipboard form {escaped(kind)} cannot be shown as UTF-8 text or as a PNG, so it cannot be allowed.",
        rule="cannot_be_shown",
    )


async def _process(ctx: Context) -> Preview:
    launch: FarLaunch = ctx.payload.method.from_params(ctx.payload.params)["launch"]
    return await about_command(ctx, list(launch.argv), ".")


async def _held_process(ctx: Context, method: Method, given: dict[str, Any]) -> Preview:
    """The process behind a handle, and what it would get; all of it, because the exact request has the digest alone."""
    held = ctx.use(PeerChildren).find(given["process"], (ctx.principal.id, ctx.scope.id))
    line = command_preview(held.prepared.argv)
    lines = [f"{_TO_PROCESS[method.attribute].format(**given)} the process `{line}`, held by {held.prepared.boundary}"]
    if method.attribute == "feed":
        lines += given["data"].decode("utf-8", "backslashreplace").split("\n")
        lines += ["and ends its input"] if given.get("is_last") else []
    return Preview(tuple(lines), {"process": digest_of_parts(given["process"], str(held.fed))})


async def _session(ctx: Context, method: Method, given: dict[str, Any]) -> Preview:
    return LOCKS


def _add_text(seen: SeenElement, says: str, text: str) -> None:
    left = len(text) - _MAX_TEXT
    seen.lines += [f"{says}:", *text[:_MAX_TEXT].split("\n")]
    if left > 0:
        seen.lines.append(f"… {left} more characters, which the exact request has")
