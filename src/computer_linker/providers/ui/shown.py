"""Previews of a desktop point, the window and the element there, with the digests that bind an act to them."""

import hashlib
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from anyio.to_thread import run_sync

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Application, Element, TreeLimits
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Point, Rect, Window
from computer_linker.policy.digest import digest_of_parts
from computer_linker.providers.window_choice import running_app
from computer_linker.system import os

_LIMITS = TreeLimits(max_nodes=2_000, max_depth=48, time_s=1.5, values=False)
_STATES = frozenset({"checked", "pressed", "selected", "expanded"})
_NAME = 200


@dataclass(slots=True)
class SeenElement:
    """The window and the element at a point."""

    lines: list[str] = field(default_factory=list)
    holds: dict[str, str] = field(default_factory=dict)
    bounds: Rect | None = None
    application: str = ""

    def add_window(self, window: Window | None, title: str = "") -> None:
        """Add the window; `title` is its accessible name where the window system has no title."""
        name = title or ("" if window is None else window.title)
        self.application = "" if window is None else window.app
        of = "" if window is None or not window.app else f" of {window.app}"
        self.lines.append(f'in the window "{name}"{of}' if name else f"in a window without a name{of}")
        self.holds["window"] = window_digest(window, title)

    def add_element(self, one: Element, name: str = "", *, is_replaced: bool = False) -> None:
        """Add the element as read by `Accessibility.element`. Its value is not part of the digest of an act that replaces it."""
        self.bounds = None if one.bounds is None or one.bounds.is_empty else one.bounds
        self.lines.append(f'{one.role} "{(name or one.name)[:_NAME]}"{_place(self.bounds)}')
        self.holds["element"] = element_digest(replace(one, value=None) if is_replaced else one, name)


def window_digest(window: Window | None, title: str = "") -> str:
    """The window's identity: its id, title and program, not its position."""
    if window is None:
        return digest_of_parts("none", title)
    return digest_of_parts(window.id, title or window.title, window.app, str(window.pid))


def element_digest(one: Element, name: str = "") -> str:
    """The element's identity: role, name, position, value and whether it is checked."""
    states = " ".join(sorted(_STATES.intersection(one.states)))
    value = "" if one.value is None or one.is_password else one.value
    return digest_of_parts(one.role, name or one.name, repr(one.bounds), value, states)


async def seen_at(computer: Computer, point: Point) -> SeenElement:
    """The topmost window at a point, and the smallest element there where the application describes it."""
    seen = SeenElement()
    window = await computer.windows.at(point) if computer.capabilities().has("windows") else None
    one = await _element_at(computer, window, point)
    if one is not None:
        seen.add_element(one)
    if window is not None:
        seen.add_window(window)
    elif one is None:
        seen.lines.append("on the bare desktop" if computer.capabilities().has("windows") else "no window can be named")
        seen.holds["window"] = window_digest(None)
    seen.bounds = seen.bounds or Rect(x=int(point.x), y=int(point.y), width=1, height=1)
    seen.lines.append(f"at the point {point.x:g},{point.y:g}")
    return seen


async def seen_at_focus(computer: Computer) -> SeenElement:
    """The window and the element that have the keyboard."""
    seen = SeenElement(["Where the keyboard is:"])
    has = computer.capabilities().has
    one = await computer.accessibility.focused() if has("accessibility") else None
    if one is not None:
        seen.add_element(await computer.accessibility.element(one.id))
    window = await computer.windows.focused() if has("windows") else None
    if window is not None:
        seen.add_window(window)
    elif one is None:
        seen.lines.append("no application describes what that is")
        seen.holds["window"] = window_digest(None)
    return seen


async def _element_at(computer: Computer, window: Window | None, point: Point) -> Element | None:
    """The smallest element visible there; None where the application does not describe it."""
    if window is None or not computer.capabilities().has("accessibility"):
        return None
    try:
        app = _app_of(await computer.accessibility.applications(), window)
        if app is None:
            return None
        root = next((one.id for one in app.windows if one.name[:_NAME] == window.title), app.root)
        tree = await computer.accessibility.tree(root, _LIMITS)
        there = [one for one in tree.elements if one.bounds is not None and one.bounds.contains(point)]
        if not there:
            return None
        smallest = min(there, key=lambda one: 0 if one.bounds is None else one.bounds.width * one.bounds.height)
        return await computer.accessibility.element(smallest.id)
    except LinkError:
        return None


def _app_of(apps: list[Application], window: Window) -> Application | None:
    own = [app for app in apps if app.pid is not None and app.pid == window.pid]
    titled = [app for app in own if any(one.name[:_NAME] == window.title for one in app.windows)]
    return next(iter(titled or own), None)


def _place(bounds: Rect | None) -> str:
    return "" if bounds is None else f" at {bounds.x:g},{bounds.y:g}, {bounds.width:g} x {bounds.height:g}"


# Previews of acts on an application: its name, its windows, and the files it is started with.

_MAX_READ = 20_000_000
_MAX_LINE = 300


async def seen_app(computer: Computer, name: str, excluded: Sequence[str]) -> SeenElement:
    """The preview of a running application and all its windows, which an act on it affects."""
    app = await running_app(computer, name, excluded)
    windows = await computer.windows.list() if computer.capabilities().has("windows") else []
    own = sorted((one.id, one.title) for one in windows if one.id in app.windows)
    seen = SeenElement([f"the application {app.name} ({app.id})", *(f'its window "{title}"' for _, title in own[:20])])
    seen.holds["application"] = digest_of_parts(app.id, app.name, repr(sorted(app.pids)))
    seen.holds["windows"] = digest_of_parts(*sorted(app.windows), *(part for one in own for part in one))
    return seen


async def seen_start(computer: Computer, name: str, arguments: Sequence[str]) -> SeenElement:
    """The preview of a start. Files among the arguments are bound to their present content."""
    known = [app for app in await computer.apps.list() if name.lower() in (app.id.lower(), app.name.lower())]
    seen = SeenElement([f"start {', '.join(f'{app.name} ({app.id})' for app in known) or name}"])
    seen.holds["application"] = digest_of_parts(*(part for app in known for part in (app.id, app.name)))
    for given in arguments:
        path = given.removeprefix("file://")
        line, digest = await run_sync(_file, path) if path.startswith("/") else ("", "")
        seen.lines.append(f"with {given[:_MAX_LINE]}{line}")
        if digest:
            seen.holds[given[:_MAX_LINE]] = digest
    return seen


def _file(path: str) -> tuple[str, str]:
    """A file's description and digest."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ", which cannot be read here", "not readable"
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return ", which is no plain file", digest_of_parts(str(found.st_dev), str(found.st_ino))
        if found.st_size > _MAX_READ:
            facts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            return f" ({found.st_size} bytes; too large to read, held by its size and time)", digest_of_parts(
                repr(facts)
            )
        digest = hashlib.sha256(file.read(_MAX_READ + 1)).hexdigest()
        return f" ({found.st_size} bytes, sha256 {digest})", digest
