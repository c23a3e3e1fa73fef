"""Accessibility of a simulated desktop: each window is an application with controls and a text."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice

from computer_linker.computer.facets.accessibility import Application, Element, ElementId, Limit, Tree, TreeLimits
from computer_linker.computer.simulated.world import SimulatedControl, SimulatedWindow, World
from computer_linker.computer.subscription import Subscription
from computer_linker.errors import ElementNotFound

_ROOT = "/"
_HIDDEN = "password-text"
_Found = tuple[SimulatedWindow, SimulatedControl | None]
"""A window and one of its controls; None is the window's own text."""


class SimulatedAccessibility:
    """Accessibility of a World."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def applications(self) -> list[Application]:
        return [self._application(window) for window in self._world.windows if window.is_described]

    async def hidden(self) -> list[str]:
        silent = [window.app for window in self._world.windows if not window.is_described]
        return [f"{app} draws its own text and never describes it. Use screen.ocr on its window." for app in silent]

    async def tree(self, root: ElementId, limits: TreeLimits = TreeLimits()) -> Tree:
        fitting = (one for one in self._below(root) if not limits.roles or one.role in limits.roles)
        elements = list(islice(fitting, limits.max_nodes + 1))
        cut: tuple[Limit, ...] = ("nodes",) if len(elements) > limits.max_nodes else ()
        return Tree(root, elements[: limits.max_nodes], cut)

    async def element(self, element_id: ElementId) -> Element:
        return next(iter((await self.tree(element_id)).elements))

    async def ancestors(self, element_id: ElementId) -> list[Element]:
        one = await self.element(element_id)
        app = ElementId(element_id.app, _ROOT)
        return [] if one.parent in (None, app) else [await self.element(one.parent)]

    async def focused(self, app: str | None = None) -> Element | None:
        window = self._world.focused()
        if window is None or not window.is_described or app not in (None, _app_id(window)):
            return None
        return self._element(window, window.focus)

    async def text(self, element_id: ElementId, *, max_chars: int = 100_000) -> str | None:
        window, control = self._find(element_id)
        return None if control is not None and control.role == _HIDDEN else _text(window, control, max_chars)

    async def text_length(self, element_id: ElementId) -> int | None:
        text = _text(*self._find(element_id))
        return None if text is None else len(text)

    async def caret(self, element_id: ElementId) -> tuple[int, int]:
        end = await self.text_length(element_id) or 0
        return end, end

    async def set_text(self, element_id: ElementId, text: str, *, caret: int | None = None) -> bool:
        window, control = self._find(element_id)
        if control is not None and (control.text is None or not control.is_enabled):
            return False
        if control is None:
            window.text = text
        else:
            control.text = text
        self._say(window, control, "object:text-changed:insert")
        return True

    async def set_value(self, element_id: ElementId, value: float) -> float:
        window, control = self._find(element_id)
        if control is None or control.value is None:
            raise ElementNotFound("The element has no value.")
        control.value = value
        self._say(window, control, "object:value-changed")
        return value

    async def actions(self, element_id: ElementId) -> list[str]:
        _window, control = self._find(element_id)
        return [] if control is None or control.text is not None else ["click"]

    async def perform(self, element_id: ElementId, action: int = 0) -> bool:
        window, control = self._find(element_id)
        if control is None or not window.press(control):
            return False
        kind = "object:state-changed:checked" if control.is_checked is not None else "object:state-changed:pressed"
        self._say(window, control, kind)
        return True

    async def select_child(self, element_id: ElementId, index: int) -> bool:
        return False

    async def focus(self, element_id: ElementId) -> bool:
        window, control = self._find(element_id)
        if control is not None and control.text is None:
            return False
        self._world.raise_to_top(window)
        window.focus = control
        return True

    async def scroll_to(self, element_id: ElementId) -> bool:
        return False

    async def is_alive(self, app: str, *, timeout_s: float = 1.0) -> bool:
        return any(_app_id(window) == app for window in self._world.windows)

    @asynccontextmanager
    async def changes(self, kinds: Sequence[str] = ()) -> AsyncIterator[Subscription]:
        subscription = Subscription(tuple(kinds))
        self._world.change_subscribers.append(subscription)
        try:
            yield subscription
        finally:
            self._world.change_subscribers.remove(subscription)

    def _application(self, window: SimulatedWindow) -> Application:
        root = ElementId(_app_id(window), _ROOT)
        windows = [self._frame(window)]
        return Application(
            root.app, window.app, window.pid, "simulated", "1", root, windows, process=window.app.lower()
        )

    def _below(self, root: ElementId) -> Iterator[Element]:
        window = self._window(root)
        if root.path == _ROOT:
            yield Element(root, None, "application", window.app, children=1)
        if root.path in (_ROOT, f"/{window.id}"):
            yield self._frame(window)
            yield self._element(window, None)
            for place, control in enumerate(window.controls):
                yield self._element(window, control, place)
        else:
            yield self._element(*self._find(root))

    def _frame(self, window: SimulatedWindow) -> Element:
        is_focused = window.id == self._world.focused_id
        states = (
            "enabled",
            "visible",
            *(("showing",) if window.is_visible else ()),
            *(("active",) if is_focused else ()),
        )
        at = ElementId(_app_id(window), f"/{window.id}")
        kinds, children = frozenset({"Component"}), 1 + len(window.controls)
        return Element(
            at, ElementId(at.app, _ROOT), "frame", window.title, states, kinds, "", window.bounds, None, children, 0
        )

    def _element(self, window: SimulatedWindow, control: SimulatedControl | None, place: int | None = None) -> Element:
        if place is None:
            place = next((at for at, one in enumerate(window.controls) if one is control), -1)
        at = ElementId(_app_id(window), f"/{window.id}/{'text' if control is None else place}")
        above = ElementId(at.app, f"/{window.id}")
        is_shown = window.is_visible and not (control is not None and control.is_hidden)
        has_keyboard = (
            window.id == self._world.focused_id
            and window.focus is control
            and (control is None or control.text is not None)
        )
        states = _states(control, is_shown=is_shown, is_focused=has_keyboard)
        if control is None:
            return Element(at, above, "text", "", states, _kinds(None), "", window.bounds, window.text, 0, 0)
        bounds = control.bounds.moved(window.bounds.x, window.bounds.y) if is_shown else None
        value = None if control.role == _HIDDEN else control.text
        if control.value is not None:
            value = f"{control.value:g}"
        return Element(at, above, control.role, control.name, states, _kinds(control), "", bounds, value, 0, place + 1)

    def _find(self, at: ElementId) -> _Found:
        window = self._window(at)
        last = at.path.rpartition("/")[2]
        if at.path.startswith(f"/{window.id}/"):
            if last == "text":
                return window, None
            if last.isdigit() and int(last) < len(window.controls):
                return window, window.controls[int(last)]
        raise ElementNotFound("The element is gone.")

    def _window(self, at: ElementId) -> SimulatedWindow:
        for window in self._world.windows:
            if window.is_described and _app_id(window) == at.app:
                return window
        raise ElementNotFound("The element is gone.")

    def _say(self, window: SimulatedWindow, control: SimulatedControl | None, kind: str) -> None:
        self._world.changed(window.bounds)
        self._world.said(window, kind, self._element(window, control).id.path, 1)


def _app_id(window: SimulatedWindow) -> str:
    return f"sim:{window.pid}"


def _text(window: SimulatedWindow, control: SimulatedControl | None, max_chars: int | None = None) -> str | None:
    text = window.text if control is None else control.text
    return None if text is None else text[:max_chars]


def _states(control: SimulatedControl | None, *, is_shown: bool, is_focused: bool) -> tuple[str, ...]:
    held = {
        "showing": is_shown,
        "visible": is_shown,
        "focused": is_focused,
        "enabled": control is None or control.is_enabled,
        "sensitive": control is None or control.is_enabled,
        "editable": control is None or control.text is not None,
        "checked": control is not None and control.is_checked is True,
    }
    return tuple(state for state, holds in held.items() if holds)


def _kinds(control: SimulatedControl | None) -> frozenset[str]:
    if control is None or control.text is not None:
        return frozenset({"Component", "Text", "EditableText"})
    if control.value is not None:
        return frozenset({"Component", "Value"})
    return frozenset({"Component", "Action"})
