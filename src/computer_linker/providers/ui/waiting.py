"""Waits for a condition on the desktop: by application events, with a slow poll for changes without events."""

import time
from dataclasses import dataclass
from typing import Annotated, Self

import anyio
from pydantic import Field, model_validator

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Change, Changes, ElementId, TreeLimits
from computer_linker.errors import ElementNotFound, LinkError, TimedOut
from computer_linker.model.base import Model
from computer_linker.model.scope import Scope
from computer_linker.providers.refs import References
from computer_linker.providers.shots import is_excluded
from computer_linker.providers.ui.outline import Line, outline
from computer_linker.providers.ui.route import Route, WindowRoute
from computer_linker.providers.ui.view import Selector, View, read_view, select

_SLOW_POLL_S = 0.25
_SELDOM = 8
_SCREEN = "screen:changed"
_SUSPECTS = 12
_GOING = (
    "object:children-changed:remove",
    "object:state-changed",
    "object:property-change",
    "window:",
    "object:text-changed",
)
_COMING = ("window:create", "window:activate", "document:load-complete")
_FEW = TreeLimits(max_nodes=40, max_depth=6, bounds=False, values=True, bulk=False, time_s=1.0)
_LIMITS = TreeLimits(bounds=False, values=True, time_s=3.0)
Text = Annotated[str, Field(min_length=1, max_length=500)]


class Condition(Model):
    """What to wait for; exactly one."""

    selector_exists: Annotated[Selector | None, Field(description="An element that fits shows.")] = None
    selector_gone: Annotated[Selector | None, Field(description="No element that fits shows any more.")] = None
    text_appears: Annotated[Text | None, Field(description="A name or value that shows contains this.")] = None
    window_title: Annotated[Text | None, Field(description="A window's title contains this.")] = None
    idle: Annotated[float | None, Field(ge=0.05, le=60, description="Nothing has changed for so many seconds.")] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = (self.selector_exists, self.selector_gone, self.text_appears, self.window_title, self.idle)
        if sum(part is not None for part in given) != 1:
            raise ValueError("give one of selectorExists, selectorGone, textAppears, windowTitle and idle")
        return self


@dataclass(slots=True)
class Outcome:
    """What matched when the condition was met."""

    matched: int
    view: View | None = None
    lines: list[Line] | None = None


@dataclass(slots=True)
class Waiting:
    """One wait."""

    computer: Computer
    scope: Scope
    references: References
    route: Route | str | None
    condition: Condition
    _place: WindowRoute | None = None
    _next_poll: float = 0.0
    _polled: float = 0.0
    _cost: float = 0.0

    @property
    def _omits_events(self) -> bool:
        """True for GTK, which does not report every new control, so that the screen is watched too."""
        return self._place is None or self._place.app.toolkit.lower() == "gtk"

    async def until(self, timeout_s: float) -> Outcome:
        """Return as soon as the condition is met.

        Raises:
            TimedOut: it was not met in time.
        """
        deadline = time.monotonic() + timeout_s
        async with self.computer.accessibility.changes() as changes:
            if self.condition.idle is not None:
                return await self._until_idle(changes, self.condition.idle, deadline, timeout_s)
            async with anyio.create_task_group() as group:
                group.start_soon(_watch_screen, self.computer, changes)
                outcome = await self._until_held(changes, deadline)
                group.cancel_scope.cancel()
        if outcome is None:
            raise TimedOut(f"The condition did not hold within {timeout_s:g} seconds.", seconds=timeout_s)
        return outcome

    async def _until_held(self, changes: Changes, deadline: float) -> Outcome | None:
        outcome = await self._poll()
        while outcome is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            await changes.wait(min(left, max(0.0, self._next_poll - time.monotonic())))
            outcome = await self._after(changes.taken())
            if outcome is None and (pause := self._next_poll - time.monotonic()) < _SLOW_POLL_S:
                # A poll is due soon: continuous changes on the screen must not trigger one each.
                await anyio.sleep(max(0.0, min(left, pause, self._cost)))
        return outcome

    async def _until_idle(self, changes: Changes, quiet_s: float, deadline: float, timeout_s: float) -> Outcome:
        while True:
            changes.taken()
            left = deadline - time.monotonic()
            if not await changes.wait(min(quiet_s, max(0.0, left))):
                if left < quiet_s:
                    raise TimedOut(f"There was no quiet within {timeout_s:g} seconds.", seconds=timeout_s)
                return Outcome(1)

    async def _after(self, events: list[Change]) -> Outcome | None:
        """Check what changed, and everything when the changes require it or a poll is due."""
        outcome = await self._check_changed(events)
        if outcome is not None:
            return outcome
        now = time.monotonic()
        if any(change.kind.startswith("window:") for change in events):
            # The focused window, or the set of windows, may be different now.
            self._place = None
        if self._requires_poll(events):
            self._next_poll = min(self._next_poll, self._polled + self._cost)
        return await self._poll() if now >= self._next_poll else None

    def _requires_poll(self, events: list[Change]) -> bool:
        if any(change.kind == _SCREEN for change in events) and self._omits_events:
            return True
        if self._place is None and events:
            return True
        if self.condition.selector_gone is not None or self.condition.window_title is not None:
            return any(change.kind.startswith(_GOING) for change in events)
        return any(change.kind.startswith(_COMING) for change in events)

    async def _check_changed(self, events: list[Change]) -> Outcome | None:
        """Check only the elements that applications reported as changed: far faster than the whole tree."""
        if self.condition.selector_exists is None and self.condition.text_appears is None:
            return None
        suspects = list(dict.fromkeys(at for change in reversed(events) if (at := _suspect(change)) is not None))
        if not suspects:
            return None
        place = self._place
        if place is None:
            return None
        for at in [at for at in suspects if at.app == place.app.id][:_SUSPECTS]:
            outcome = await self._peek_at(place, at)
            if outcome is not None:
                return outcome
        return None

    async def _peek_at(self, place: WindowRoute, at: ElementId) -> Outcome | None:
        reader = self.computer.accessibility
        try:
            tree = await reader.tree(at, _FEW)
            lines, _cut = outline(place.app, tree.elements)
            found = self._fitting([line for line in lines if line.is_showing])
            if not found or not await self._is_within(place, at):
                return None
        except (ElementNotFound, TimedOut):
            return None
        refs = self.references.give(self.scope.id, place.app, tree.elements, from_window=False)
        return Outcome(len(found), View(place, lines, refs, ()), found)

    async def _is_within(self, place: WindowRoute, at: ElementId) -> bool:
        if place.window is None or at == place.window.id:
            return True
        above = await self.computer.accessibility.ancestors(at)
        return any(one.id == place.window.id for one in above)

    def _fitting(self, showing: list[Line]) -> list[Line]:
        if self.condition.selector_exists is not None:
            return select(self.condition.selector_exists, showing)
        text = (self.condition.text_appears or "").casefold()
        return [line for line in showing if text in line.name.casefold() or text in (line.value or "").casefold()]

    async def _poll(self) -> Outcome | None:
        started = time.monotonic()
        try:
            return await self._poll_once()
        finally:
            # Slow polls are rare: applications report most changes, this only catches the rest.
            self._polled = time.monotonic()
            self._cost = self._polled - started
            self._next_poll = self._polled + max(_SLOW_POLL_S, _SELDOM * self._cost)

    async def _poll_once(self) -> Outcome | None:
        wanted = self.condition
        if wanted.window_title is not None:
            return await self._window(wanted.window_title)
        try:
            view = await read_view(
                self.computer, self.scope, self.references, self._place or self.route, limits=_LIMITS
            )
        except ElementNotFound:
            # The application or window does not exist yet, or no longer.
            self._place = None
            return Outcome(0) if wanted.selector_gone is not None else None
        except TimedOut:
            # It is busy, such as while it starts; that does not tell whether the condition is met.
            self._place = None
            return None
        self._place = view.place
        showing = [line for line in view.lines if line.is_showing]
        if wanted.selector_gone is not None:
            return None if select(wanted.selector_gone, showing) or view.cut_by else Outcome(0, view, [])
        found = self._fitting(showing)
        return Outcome(len(found), view, found) if found else None

    async def _window(self, title: str) -> Outcome | None:
        kept_out = self.scope.policy.excluded_applications
        windows = [one for one in await self.computer.windows.list() if not is_excluded(one, kept_out)]
        found = sum(1 for window in windows if title.casefold() in window.title.casefold())
        return Outcome(found) if found else None


async def _watch_screen(computer: Computer, changes: Changes) -> None:
    """Forward every screen change, where the window system reports them."""
    if not computer.capabilities().has("screen"):
        return
    try:
        async for _areas in computer.screen.changes():
            changes.put(Change("", "", _SCREEN, at=time.monotonic()))
    except LinkError:
        # Not every window system reports changes; then the slow poll has to do.
        return


def _suspect(change: Change) -> ElementId | None:
    """The element in which a change may have fulfilled a condition."""
    if change.kind.startswith("object:children-changed:add"):
        return change.child or ElementId(change.app, change.path)
    if change.kind.startswith(("object:property-change", "object:text-changed:insert")):
        return ElementId(change.app, change.path)
    if change.kind.startswith("object:state-changed") and change.detail == 1:
        return ElementId(change.app, change.path)
    return None
