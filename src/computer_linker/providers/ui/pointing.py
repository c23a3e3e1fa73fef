"""Clicking, dragging and scrolling at an aim, by the method that is safe for its toolkit."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import anyio

from computer_linker.computer.facets.accessibility import Application, Element
from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.errors import Conflict, LinkError
from computer_linker.model.geometry import Point, Rect
from computer_linker.providers.ui.aim import Aim, Aiming
from computer_linker.providers.ui.presses import ENTRIES
from computer_linker.providers.ui.roles import PRESSED
from computer_linker.providers.ui.witness import Witness

Method = Literal["action", "pointer"]
_PRESSES = (
    "click",
    "press",
    "activate",
    "toggle",
    "check",
    "uncheck",
    "jump",
    "open",
    "dodefault",
    "select",
    "showmenu",
)
_AROUND = 300
_UNFOLD_S = 1.0
_ENABLED_S = 1.0
_ANSWERS_FOR_OTHERS = frozenset({"chromium", "gecko", "j2se-access-bridge"})
"""What answers is another process, or in Java another thread, than the one that shows effects."""


@dataclass(frozen=True, slots=True)
class Click:
    """How to click."""

    button: Button = "left"
    count: int = 1
    modifiers: Sequence[Modifier] = ()

    @property
    def is_plain(self) -> bool:
        return self.button == "left" and self.count == 1 and not self.modifiers


async def click(aiming: Aiming, aim: Aim, how: Click, watch: Witness) -> Method:
    """Click the aim. GTK 3 gets pointer events: an accessibility action that opens a dialog freezes the application."""
    await _until_enabled(aiming, aim)
    refuse_disabled(aim)
    watch.is_late = aim.app is not None and aim.app.toolkit.lower() in _ANSWERS_FOR_OTHERS
    await _unfolded(aiming, aim)
    number = await _press_action(aiming, aim) if how.is_plain else None
    if number is not None and aim.element is not None:
        await watch.begin(aim.element, aim.app_id, await area_of(aiming, aim))
        if await aiming.computer.accessibility.perform(aim.element.id, number):
            return "action"

    async def ready(place: Point) -> None:
        # Move the pointer first: hovering changes the appearance, which is no effect of the click.
        left = await _pointer_place(aiming)
        await aiming.computer.pointer.move(place)
        watch.was_scrolled = aim.was_scrolled
        await watch.begin(aim.element, aim.app_id, await area_of(aiming, aim), left)
        await aiming.presses.let_pass(aim.element, aim.app)
        await aiming.presses.apart(aim.element, place, how.count)

    place = await aiming.reach(aim, ready)
    # As it is with the pointer over it: a menu selects the entry that is hovered.
    watch.element = aim.element
    await aiming.computer.pointer.click(place, button=how.button, count=how.count, modifiers=how.modifiers)
    aiming.presses.note(aim.app_id, place)
    return "pointer"


async def drag(
    aiming: Aiming, start: Aim, end: Aim, button: Button, modifiers: Sequence[Modifier], watch: Witness
) -> Method:
    """Press at one aim and release at another."""
    refuse_disabled(start)

    async def ready(_place: Point) -> None:
        # The pointer is where it will end: hovering over the control there is no effect of the drag.
        await aiming.computer.pointer.move(target)
        watch.hovered = [*_hovered(start), *_hovered(end)]
        await watch.begin(None, start.app_id, await area_of(aiming, start))

    target = await aiming.point(end)
    origin = await aiming.reach(start, ready)
    if not await aiming.still_there(end, target):
        raise Conflict("The place to drag to moved, so nothing was pressed.", ref=end.ref)
    await aiming.computer.pointer.drag([origin, target], button=button, modifiers=modifiers)
    return "pointer"


async def scroll(aiming: Aiming, aim: Aim, dx: int, dy: int, modifiers: Sequence[Modifier], watch: Witness) -> Method:
    """Turn the wheel over an aim."""
    watch.must_show = True

    async def ready(place: Point) -> None:
        await aiming.computer.pointer.move(place)
        watch.hovered = _hovered(aim)
        await watch.begin(None, aim.app_id, await area_of(aiming, aim))

    place = await aiming.reach(aim, ready)
    await aiming.computer.pointer.scroll(place, dx=dx, dy=dy, modifiers=modifiers)
    return "pointer"


def _hovered(aim: Aim) -> list[Rect]:
    """The bounds of a control that is drawn otherwise while the pointer is over it, some frames after it came there."""
    one = aim.element
    return [one.bounds] if one is not None and one.bounds is not None and one.role in PRESSED else []


async def area_of(aiming: Aiming, aim: Aim) -> Rect | None:
    """The part of the desktop whose pixels can show an act's effect: the aim's window."""
    _when, window = aim.stood
    window = await aiming.window(aim) if window is None else window
    if window is not None:
        return window.bounds
    middle: Point | None = aim.point
    if middle is None and aim.element is not None and aim.element.bounds is not None:
        middle = aim.element.bounds.center
    if middle is None:
        return None
    return Rect(x=int(middle.x) - _AROUND, y=int(middle.y) - _AROUND, width=2 * _AROUND, height=2 * _AROUND)


async def _pointer_place(aiming: Aiming) -> Point | None:
    """Where the pointer is; None where the window system does not report it."""
    try:
        return await aiming.computer.pointer.position()
    except LinkError:
        return None


def refuse_disabled(aim: Aim) -> None:
    """Raise Conflict for a control that its application has disabled: a click on it would do nothing."""
    one = aim.element
    if one is not None and _is_disabled(one):
        raise Conflict("The element is disabled.", ref=aim.ref, states=list(one.states))


async def _until_enabled(aiming: Aiming, aim: Aim) -> None:
    """Give a disabled control a moment: a dialog may look at what was typed before it enables its button."""
    deadline = time.monotonic() + _ENABLED_S
    while _is_disabled(aim.element) and time.monotonic() < deadline:
        assert aim.element is not None
        await anyio.sleep(0.05)
        aim.element = await aiming.computer.accessibility.element(aim.element.id)


def _is_disabled(one: Element | None) -> bool:
    return one is not None and one.role in PRESSED and not {"enabled", "sensitive"}.intersection(one.states)


async def _unfolded(aiming: Aiming, aim: Aim) -> None:
    """Wait until an entry of an open Chromium list is reported as showing, a moment after the list opened."""
    one, app = aim.element, aim.app
    if one is None or app is None or app.toolkit.lower() != "chromium" or one.role not in ENTRIES:
        return
    reader = aiming.computer.accessibility
    is_open = any("expanded" in above.states for above in await reader.ancestors(one.id))
    deadline = time.monotonic() + _UNFOLD_S
    while is_open and not one.has("showing") and time.monotonic() < deadline:
        await anyio.sleep(0.02)
        one = aim.element = await reader.element(one.id)


async def _press_action(aiming: Aiming, aim: Aim) -> int | None:
    """The index of the press action; None where the pointer must be used."""
    one, app = aim.element, aim.app
    if one is None or app is None or not _may_perform(one, app):
        return None
    names = [
        name.lower().replace(" ", "").replace("_", "") for name in await aiming.computer.accessibility.actions(one.id)
    ]
    return next((place for place, name in enumerate(names) if name in _PRESSES), None)


def _may_perform(one: Element, app: Application) -> bool:
    if app.toolkit.lower() == "qt" and one.role in ENTRIES and one.has("showing"):
        # Its action leaves the menu or list open, where the next click is lost.
        return False
    if app.toolkit.lower() == "chromium" and one.has("showing"):
        # It takes an action for an element that is gone by now, and then reports what it caused a second late.
        return False
    return one.role in PRESSED and "Action" in one.interfaces and not app.is_gtk3
