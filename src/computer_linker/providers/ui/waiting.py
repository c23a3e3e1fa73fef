"""Waiting for something to be so: woken by what applications say, with a slow look in between for what they forget to say."""

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
from computer_linker.providers.refs.store import References
from computer_linker.providers.shots import is_excluded
from computer_linker.providers.ui.look import View, look
from computer_linker.providers.ui.outline import Line, outline
from computer_linker.providers.ui.route import Place, Route
from computer_linker.providers.ui.selector import Selector, select

_SLOW_LOOK_S = 0.25
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
Words = Annotated[str, Field(min_length=1, max_length=500)]


class Condition(Model):
    """What to wait for; exactly one."""

    selector_exists: Annotated[Selector | None, Field(description="An element that fits shows.")] = None
    selector_gone: Annotated[Selector | None, Field(description="No element that fits shows any more.")] = None
    text_appears: Annotated[Words | None, Field(description="A name or value that shows contains this.")] = None
    window_title: Annotated[Words | None, Field(description="A window's title contains this.")] = None
    idle: Annotated[float | None, Field(ge=0.05, le=60, description="Nothing has changed for so many seconds.")] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = (self.selector_exists, self.selector_gone, self.text_appears, self.window_title, self.idle)
        if sum(part is not None for part in given) != 1:
            raise ValueError("give one of selectorExists, selectorGone, textAppears, windowTitle and idle")
        return self


@dataclass(slots=True)
class Outcome:
    """What was there when the condition held."""

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
    _place: Place | None = None
    _next_look: float = 0.0
    _looked: float = 0.0
    _cost: float = 0.0

    @property
    def _says_little(self) -> bool:
        """GTK does not tell of every new control, so there the screen itself is watched too."""
        return self._place is None or self._place.app.toolkit.lower() == "gtk"

    async def until(self, timeout_s: float) -> Outcome:
        """Return as soon as the condition holds.

        Raises:
            TimedOut: it did not hold in time.
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
        outcome = await self._look()
        while outcome is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            await changes.wait(min(left, max(0.0, self._next_look - time.monotonic())))
            outcome = await self._after(changes.taken())
            if outcome is None and (pause := self._next_look - time.monotonic()) < _SLOW_LOOK_S:
                # A look is due soon: what keeps changing on the screen must not call for one all the time.
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

    async def _after(self, heard: list[Change]) -> Outcome | None:
        """Look at what changed, and at everything when the changes say so or it is time again."""
        outcome = await self._peek(heard)
        if outcome is not None:
            return outcome
        now = time.monotonic()
        if any(change.kind.startswith("window:") for change in heard):
            # Which window has the focus, or which there are, may be another answer now.
            self._place = None
        if self._calls_for_a_look(heard):
            self._next_look = min(self._next_look, self._looked + self._cost)
        return await self._look() if now >= self._next_look else None

    def _calls_for_a_look(self, heard: list[Change]) -> bool:
        if any(change.kind == _SCREEN for change in heard) and self._says_little:
            return True
        if self._place is None and heard:
            return True
        if self.condition.selector_gone is not None or self.condition.window_title is not None:
            return any(change.kind.startswith(_GOING) for change in heard)
        return any(change.kind.startswith(_COMING) for change in heard)

    async def _peek(self, heard: list[Change]) -> Outcome | None:
        """Look only at what applications say has changed: far quicker than the whole tree."""
        if self.condition.selector_exists is None and self.condition.text_appears is None:
            return None
        suspects = list(dict.fromkeys(at for change in reversed(heard) if (at := _suspect(change)) is not None))
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

    async def _peek_at(self, place: Place, at: ElementId) -> Outcome | None:
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

    async def _is_within(self, place: Place, at: ElementId) -> bool:
        if place.window is None or at == place.window.id:
            return True
        above = await self.computer.accessibility.ancestors(at)
        return any(one.id == place.window.id for one in above)

    def _fitting(self, showing: list[Line]) -> list[Line]:
        if self.condition.selector_exists is not None:
            return select(self.condition.selector_exists, showing)
        text = (self.condition.text_appears or "").casefold()
        return [line for line in showing if text in line.name.casefold() or text in (line.value or "").casefold()]

    async def _look(self) -> Outcome | None:
        started = time.monotonic()
        try:
            return await self._look_once()
        finally:
            # What takes long is done seldom: applications tell of changes, this only catches what they forget.
            self._looked = time.monotonic()
            self._cost = self._looked - started
            self._next_look = self._looked + max(_SLOW_LOOK_S, _SELDOM * self._cost)

    async def _look_once(self) -> Outcome | None:
        wanted = self.condition
        if wanted.window_title is not None:
            return await self._window(wanted.window_title)
        try:
            view = await look(self.computer, self.scope, self.references, self._place or self.route, limits=_LIMITS)
        except ElementNotFound:
            # The application or window is not there yet, or no longer.
            self._place = None
            return Outcome(0) if wanted.selector_gone is not None else None
        except TimedOut:
            # It is busy, as while it starts; that says nothing of what it shows.
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
    """Tell of every change on the screen, where the window system does."""
    if not computer.capabilities().has("screen"):
        return
    try:
        async for _areas in computer.screen.changes():
            changes.put(Change("", "", _SCREEN, at=time.monotonic()))
    except LinkError:
        # Not every window system tells; then the slow look has to do.
        return


def _suspect(change: Change) -> ElementId | None:
    """The element in which a change may have made a condition true."""
    if change.kind.startswith("object:children-changed:add"):
        return change.child or ElementId(change.app, change.path)
    if change.kind.startswith(("object:property-change", "object:text-changed:insert")):
        return ElementId(change.app, change.path)
    if change.kind.startswith("object:state-changed") and change.detail == 1:
        return ElementId(change.app, change.path)
    return None
