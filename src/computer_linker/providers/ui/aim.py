"""Aims: the target of an act, resolved anew, and the point at which a click reaches it."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

import anyio
from pydantic import Field, model_validator

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.errors import Conflict, LinkError, PermissionDenied, ProviderUnavailable
from computer_linker.model.base import Model
from computer_linker.model.geometry import Coordinate, Point, Rect, Window
from computer_linker.model.scope import Scope
from computer_linker.providers.refs import References
from computer_linker.providers.shots import Frames, is_excluded, stack_of
from computer_linker.providers.ui.presses import Presses
from computer_linker.providers.ui.route import PERSONS_OWN, Route, is_out_of_reach, window_of
from computer_linker.providers.ui.view import Selector, pick_one

_FOCUS_S = 0.5
_STEP_S = 0.01
_FRAME_S = 0.017
_STILL_S = 0.04
"""A little more than two frames: an animation moves a window with every frame."""
_RESTORED_S = 0.25
_MOVES_S = 2.0
_TRIES = 3
_CLIPS = frozenset({"scroll-pane", "viewport", "document-web"})


class AimAt(Model):
    """What to act on: a reference, a selector (with the route to search), or a point in a captured frame."""

    ref: Annotated[str | None, Field(min_length=1, max_length=40)] = None
    selector: Selector | None = None
    route: Annotated[
        Route | str | None, Field(description="Where the selector searches; the focused window by default.")
    ] = None
    frame_id: Annotated[str | None, Field(max_length=64, description="The capture in which x and y were seen.")] = None
    x: Coordinate | None = None
    y: Coordinate | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        point = (self.frame_id, self.x, self.y)
        if any(part is not None for part in point) and None in point:
            raise ValueError("a point needs frameId, x and y")
        if sum((self.ref is not None, self.selector is not None, self.frame_id is not None)) != 1:
            raise ValueError("give one of ref, selector, and frameId with x and y")
        if self.route is not None and self.selector is None:
            raise ValueError("route goes with a selector")
        return self


@dataclass(slots=True)
class Aim:
    """A resolved target. `element` is None for a bare point."""

    element: Element | None = None
    app: Application | None = None
    ref: str | None = None
    frame: Element | None = None
    """Its window, as its application described it."""
    point: Point | None = None
    name: str = ""
    seen: tuple[str, Point] | None = None
    """The captured frame of a bare point, and its position in that image."""
    was_scrolled: bool = False
    """Whether it had to be scrolled into view."""
    stood: tuple[float, Window | None] = (0.0, None)
    """When it was last looked for, and its window as it was then."""

    @property
    def title(self) -> str:
        """The title of its window."""
        return "" if self.frame is None else self.frame.name

    @property
    def app_id(self) -> str | None:
        return None if self.element is None else self.element.id.app


@dataclass(frozen=True, slots=True)
class Aiming:
    """Resolves aims for one request."""

    computer: Computer
    scope: Scope
    references: References
    frames: Frames
    presses: Presses = field(default_factory=Presses)

    async def take(self, at: AimAt | str) -> Aim:
        """Resolve the target of a request.

        Raises:
            StaleReference: the reference or the frame is outdated.
            ElementNotFound, Conflict: the selector fits none, or several.
            PermissionDenied: it belongs to an application the scope keeps out of reach.
        """
        given = AimAt(ref=at) if isinstance(at, str) else at
        if given.frame_id is not None and given.x is not None and given.y is not None:
            place = Point(x=given.x, y=given.y)
            found = await self.frames.locate(given.frame_id, place, scope=self.scope.id, computer=self.computer)
            await self._refuse_excluded(found)
            return Aim(point=found, seen=(given.frame_id, place))
        if given.selector is not None:
            view, line = await pick_one(self.computer, self.scope, self.references, given.selector, given.route)
            known = self.references.find(self.scope.id, view.refs[line.element.id])
            now = await self.computer.accessibility.element(line.element.id)
            return Aim(now, view.place.app, known.ref, known.window, name=line.name)
        reference, now = await self.references.resolve(self.scope.id, given.ref or "", self.computer)
        app = await self._application(now.id.app)
        if app is not None and await is_out_of_reach(self.computer, self.scope, app):
            raise PermissionDenied("This scope keeps that application out of reach.", rule="excludedApplications")
        return Aim(now, app, reference.ref, reference.window, name=now.name)

    async def focused(self) -> Aim | None:
        """The element with the keyboard focus; None where none is reported, since keys only need a focused window.

        Raises:
            PermissionDenied: the keyboard is in an application the scope keeps out of reach, or may be.
        """
        element = await self._focused_element()
        if element is None:
            await self._refuse_excluded_front()
            return None
        app = await self._application(element.id.app)
        if app is not None and await is_out_of_reach(self.computer, self.scope, app):
            raise PermissionDenied(
                "This scope keeps the focused application out of reach.", rule="excludedApplications"
            )
        window = next((one for one in (app.windows if app else []) if "active" in one.states), None)
        return Aim(element, app, None, window, name=element.name)

    async def point(self, aim: Aim) -> Point:
        """A point at which a click reaches the aim, its window brought to the front when something covers it.

        It may be moving; `reach` and `still_there` refuse that.

        Raises:
            Conflict: it is not visible, or another window stays in front of it.
        """
        if aim.point is not None:
            return aim.point
        own = await self.window(aim)
        aim.stood = (time.monotonic(), own)
        if own is not None and not own.is_visible:
            # Restored: a window manager may take a quarter of a second to position it, and sends no event for that.
            await self._to_front(aim)
            await self._stand_still(aim, _RESTORED_S)
        else:
            place = await self._visible_middle(aim)
            is_covered = await self._covered_by(aim, place) is not None
            if not is_covered and not aim.was_scrolled:
                return place
            if is_covered:
                await self._to_front(aim)
        # What was scrolled sends its events for a while; they are no effect of the act to come.
        await self._stand_still(aim, _RESTORED_S if aim.was_scrolled else _STILL_S)
        place = await self._visible_middle(aim)
        cover = await self._covered_by(aim, place)
        if cover is not None:
            raise Conflict("Another window covers the element.", coveredBy=cover.title)
        return place

    async def still_there(self, aim: Aim, place: Point) -> bool:
        """Whether it has stood where it was found and a click would reach it there; checked right before every act.

        Raises:
            StaleReference: what was seen at a bare point is no longer there.
        """
        if aim.seen is not None:
            frame, seen = aim.seen
            return await self.frames.locate(frame, seen, scope=self.scope.id, computer=self.computer) == place
        if aim.element is None:
            return True
        since, window = aim.stood
        await anyio.sleep(max(0.0, since + _STILL_S - time.monotonic()))
        was = aim.element
        now = aim.element = await self.computer.accessibility.element(was.id)
        try:
            stack = await stack_of(self.computer)
        except LinkError:
            return was.bounds == now.bounds
        is_same = window is None or any((one.id, one.frame) == (window.id, window.frame) for one in stack)
        return is_same and was.bounds == now.bounds and await self._covered_by(aim, place, stack) is None

    async def reach(self, aim: Aim, ready: Callable[[Point], Awaitable[None]]) -> Point:
        """The point to act at, checked once more after `ready` prepared the act there.

        Raises:
            Conflict: the aim keeps moving.
        """
        for _ in range(_TRIES):
            place = await self.point(aim)
            await ready(place)
            if await self.still_there(aim, place):
                return place
        raise Conflict("The element keeps moving, so nothing was pressed.", ref=aim.ref)

    async def bring_to_front(self, aim: Aim) -> None:
        """Focus the aim's window."""
        window = await self.window(aim)
        if window is not None and not window.is_focused:
            await self.computer.windows.focus(window.id)

    async def give_focus(self, aim: Aim) -> None:
        """Focus the element: by accessibility, and by a click when that failed.

        Raises:
            Conflict: it did not take the focus.
        """
        one = aim.element
        assert one is not None
        await self.bring_to_front(aim)
        if await self._has_focus(one):
            return
        if await self.computer.accessibility.focus(one.id) and await self._until_focused(one):
            return
        await self.computer.pointer.click(await self.reach(aim, self.computer.pointer.move))
        if not await self._until_focused(one):
            raise Conflict("The element did not take the keyboard focus, so nothing was typed.", ref=aim.ref)

    async def refuse_refocused(self, aim: Aim | None, *, is_target: bool) -> None:
        """Raise Conflict where the keyboard has left the target, or the window that had it, since the aim was taken."""
        if is_target and aim is not None and aim.element is not None:
            is_same = await self._has_focus(aim.element)
        else:
            now = await self.focused()
            is_same = _where(now) == _where(aim)
        if not is_same:
            raise Conflict("The keyboard focus has just moved elsewhere, so nothing was pressed.")

    async def window(self, aim: Aim) -> Window | None:
        """The window system's window of the aim.

        Raises:
            Conflict: several windows have its title, and its application does not tell which one it is.
        """
        if not self.computer.capabilities().has("windows"):
            return None
        if aim.point is not None:
            return await self.computer.windows.at(aim.point)
        windows = await self.computer.windows.list()
        own = [one for one in windows if aim.app is not None and aim.app.pid is not None and one.pid == aim.app.pid]
        titled = [one for one in (own or windows) if aim.title and one.title == aim.title[:200]]
        if len(titled) > 1 and aim.frame is not None:
            return window_of(await self.computer.accessibility.element(aim.frame.id), titled)
        return next(iter(titled or own), None)

    async def _until_focused(self, one: Element) -> bool:
        deadline = time.monotonic() + _FOCUS_S
        while not await self._has_focus(one):
            if time.monotonic() > deadline:
                return False
            await anyio.sleep(_STEP_S)
        return True

    async def _has_focus(self, one: Element) -> bool:
        return "focused" in (await self.computer.accessibility.element(one.id)).states

    async def _to_front(self, aim: Aim) -> None:
        window = await self.window(aim)
        if window is not None:
            await self.computer.windows.focus(window.id)

    async def _stand_still(self, aim: Aim, seconds: float) -> None:
        """Wait until neither the element nor its window has moved for `seconds`.

        Raises:
            Conflict: they kept moving.
        """
        assert aim.element is not None
        deadline, since, was = time.monotonic() + _MOVES_S, time.monotonic(), None
        while True:
            window = await self.window(aim)
            aim.element = await self.computer.accessibility.element(aim.element.id)
            now = (aim.element.bounds, None if window is None else (window.frame, window.is_visible))
            if now != was:
                since, was = time.monotonic(), now
            elif time.monotonic() - since >= seconds:
                aim.stood = (since, window)
                return
            if time.monotonic() > deadline:
                raise Conflict("The element keeps moving, so nothing was pressed.", ref=aim.ref)
            await anyio.sleep(_FRAME_S)

    async def _visible_middle(self, aim: Aim) -> Point:
        one = aim.element
        assert one is not None
        if one.bounds is None:
            # Bounds are known only for visible elements; this one may be scrolled out of view.
            one = aim.element = await self.computer.accessibility.element(one.id)
        shown = await self._shown_part(one)
        if shown.is_empty:
            aim.was_scrolled = True
            if not await self.computer.accessibility.scroll_to(one.id) and one.has("focusable"):
                # GTK 3 cannot scroll on request, but scrolls to what takes the focus.
                await self.computer.accessibility.focus(one.id)
        deadline = time.monotonic() + _FOCUS_S
        while shown.is_empty and time.monotonic() < deadline:
            # A running layout, or the scrolling just requested, takes a moment.
            await anyio.sleep(_STEP_S)
            one = aim.element = await self.computer.accessibility.element(one.id)
            shown = await self._shown_part(one)
        if shown.is_empty:
            raise Conflict("The element shows nowhere now. Scroll it into view or open what holds it.", ref=aim.ref)
        return Point(x=int(shown.x + shown.width / 2), y=int(shown.y + shown.height / 2))

    async def _shown_part(self, one: Element) -> Rect:
        shown = one.bounds or Rect(x=0, y=0, width=0, height=0)
        for outer in await self.computer.accessibility.ancestors(one.id):
            if outer.role in _CLIPS and outer.bounds is not None:
                shown = shown.intersection(outer.bounds)
        for display in [] if shown.is_empty else await self.computer.screen.displays():
            if not display.bounds.intersection(shown).is_empty:
                return display.bounds.intersection(shown)
        return Rect(x=0, y=0, width=0, height=0)

    async def _covered_by(self, aim: Aim, place: Point, stack: Sequence[Window] | None = None) -> Window | None:
        """The window of another application at that point."""
        if aim.app is None or aim.app.pid is None or not self.computer.capabilities().has("windows"):
            return None
        try:
            stack = await stack_of(self.computer) if stack is None else stack
        except LinkError:
            return None
        there = next((one for one in stack if one.is_visible and one.frame.contains(place)), None)
        if there is None or there.pid is None or there.pid != aim.app.pid:
            return there or None
        titles = _titles(aim.app)
        if there.title == aim.title[:200] and titles.count(there.title) == 1:
            return None
        if there.title not in titles or there.id not in {one.id for one in await self.computer.windows.list()}:
            # A menu or tooltip of the same application may belong to the aim; another of its windows does not.
            return None
        own = await self.window(aim)
        return there if own is not None and there.id != own.id else None

    async def _application(self, app_id: str) -> Application | None:
        apps = await self.computer.accessibility.applications()
        return next((app for app in apps if app.id == app_id), None)

    async def _focused_element(self) -> Element | None:
        if not self.computer.capabilities().has("accessibility"):
            return None
        try:
            return await self.computer.accessibility.focused()
        except ProviderUnavailable:
            # No accessibility bus runs here.
            return None

    async def _refuse_excluded_front(self) -> None:
        if self.computer.capabilities().has("windows"):
            self._refuse_window(await self.computer.windows.focused())
        elif self.scope.policy.excluded_applications:
            raise PermissionDenied(
                "This scope keeps applications out of reach, and nothing here tells which one has the keyboard.",
                rule="excludedApplications",
            )

    async def _refuse_excluded(self, place: Point) -> None:
        if self.computer.capabilities().has("windows"):
            self._refuse_window(await self.computer.windows.at(place))

    def _refuse_window(self, window: Window | None) -> None:
        patterns = (*PERSONS_OWN, *self.scope.policy.excluded_applications)
        if window is not None and is_excluded(window, patterns):
            raise PermissionDenied("This scope keeps that application out of reach.", rule="excludedApplications")


def _where(aim: Aim | None) -> tuple[str | None, ElementId | None] | None:
    return None if aim is None else (aim.app_id, None if aim.frame is None else aim.frame.id)


def _titles(app: Application) -> list[str]:
    return [window.name[:200] for window in app.windows if window.name]
