"""Previews of a desktop point, the window and the element there, with the digests that bind an act to them."""

from dataclasses import dataclass, field, replace

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Application, Element, TreeLimits
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Point, Rect, Window
from computer_linker.policy.digest import digest_of_parts

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
