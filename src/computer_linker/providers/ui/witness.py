"""What came of an act: read back from the element, from what its application says, and from the pixels."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Change, Changes, Element
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import LinkError
from computer_linker.model.effect import Known
from computer_linker.model.geometry import Rect
from computer_linker.providers.ui.pixels import changed_area
from computer_linker.providers.ui.presses import ENTRIES
from computer_linker.providers.ui.roles import CHECKED, TEXTS

SETTLE_S = 0.8
"""GTK 4 acts on an accessibility action about a quarter of a second late."""
_LOOK_AGAIN_S = 0.1
_STILL_S = 0.4
_FRAME_S = 0.017
_MEANT = (
    "object:text-changed",
    "object:children-changed",
    "object:property-change:accessible-name",
    "object:property-change:accessible-value",
    "object:selection-changed",
    "object:value-changed",
    "object:active-descendant-changed",
    "object:state-changed:checked",
    "object:state-changed:expanded",
    "object:state-changed:selected",
    "object:state-changed:showing",
    "object:state-changed:enabled",
    "object:state-changed:sensitive",
    "object:state-changed:modal",
    "window:create",
    "window:destroy",
    "document:load-complete",
)
_HOVERED = ("object:selection-changed", "object:state-changed:selected", "object:active-descendant-changed")
_MEANT_BY_ENTRY = tuple(kind for kind in _MEANT if kind not in _HOVERED)
"""A menu selects what the pointer is over, so that says nothing of a click."""
_REACHED = ("object:state-changed:pressed", "object:state-changed:armed", "object:state-changed:focused")
_HOVER_MARGIN = 8


@dataclass(slots=True)
class Witness:
    """Watches one act. `chatter` are the elements that were talking anyway before it began."""

    computer: Computer
    changes: Changes | None
    chatter: set[tuple[str, str]] = field(default_factory=set)
    area: Rect | None = None
    before: Pixmap | None = None
    element: Element | None = None
    app: str | None = None

    async def begin(self, element: Element | None, app: str | None, area: Rect | None) -> None:
        """Note how things are, just before the act."""
        self.element, self.app, self.area = element, app, area
        if self.changes is not None:
            self.chatter |= {(change.app, change.path) for change in self.changes.taken()}
        self.before = await self._still()

    async def verdict(self, settle_s: float = SETTLE_S) -> Known:
        """What is known of the effect; returns as soon as it is confirmed."""
        deadline = time.monotonic() + settle_s
        reached = False
        while True:
            heard = [] if self.changes is None else self.changes.taken()
            if await self._is_confirmed(heard):
                return "confirmed"
            reached = reached or any(self._is_ours(change) and change.kind.startswith(_REACHED) for change in heard)
            left = deadline - time.monotonic()
            if left <= 0:
                break
            await self._pause(min(left, _LOOK_AGAIN_S))
        if self._is_checkable:
            return "suspected_noop"
        changed = await self._pixels_changed()
        if changed is None or (not changed and reached):
            return "unverifiable"
        return "confirmed" if changed else "suspected_noop"

    @property
    def _is_checkable(self) -> bool:
        return self.element is not None and self.element.role in CHECKED

    async def _is_confirmed(self, heard: list[Change]) -> bool:
        if self.element is not None and (self._is_checkable or self.element.role in TEXTS):
            return await self._state_changed()
        meant = _MEANT_BY_ENTRY if self.element is not None and self.element.role in ENTRIES else _MEANT
        return any(self._is_ours(change) and change.kind.startswith(meant) for change in heard)

    def _is_ours(self, change: Change) -> bool:
        return (self.app is None or change.app == self.app) and (change.app, change.path) not in self.chatter

    async def _state_changed(self) -> bool:
        assert self.element is not None
        try:
            now = await self.computer.accessibility.element(self.element.id)
        except LinkError:
            # It went away with the act, as a menu's entry does.
            return True
        watched = ("focused",) if self.element.role in TEXTS else ("checked", "pressed", "selected")
        was, is_ = set(self.element.states), set(now.states)
        if self.element.role in TEXTS:
            return "focused" in is_
        return any((state in was) != (state in is_) for state in watched)

    async def _pixels_changed(self) -> bool | None:
        """Whether something else than the control itself looks different; None when that cannot be told."""
        after = await self._capture()
        if self.before is None or after is None or self.area is None:
            return None
        changed = changed_area(self.before, after)
        if changed is None:
            return False
        if self.element is None or self.element.bounds is None:
            return True
        # A pointer over a control, or the focus on it, changes its looks: only what changed elsewhere tells.
        own = self.element.bounds
        wide = Rect(
            x=own.x - _HOVER_MARGIN,
            y=own.y - _HOVER_MARGIN,
            width=own.width + 2 * _HOVER_MARGIN,
            height=own.height + 2 * _HOVER_MARGIN,
        )
        return changed.intersection(wide) != changed

    async def _still(self) -> Pixmap | None:
        """The pixels once they stand still; None when they never do, for then they cannot tell anything."""
        deadline = time.monotonic() + _STILL_S
        seen = await self._capture()
        while seen is not None:
            await anyio.sleep(_FRAME_S)
            again = await self._capture()
            if again is not None and again.data == seen.data:
                return again
            if time.monotonic() > deadline:
                return None
            seen = again
        return None

    async def _capture(self) -> Pixmap | None:
        if self.area is None or self.area.is_empty or not self.computer.capabilities().has("screen"):
            return None
        try:
            return await self.computer.screen.capture(self.area)
        except LinkError:
            return None

    async def _pause(self, seconds: float) -> None:
        if self.changes is None:
            await anyio.sleep(seconds)
        else:
            await self.changes.wait(seconds)


@asynccontextmanager
async def witness(computer: Computer, *, wanted: bool) -> AsyncIterator[Witness]:
    """A witness that listens from now on, so that what chatters anyway is known before the act begins."""
    if not wanted or not computer.capabilities().has("accessibility"):
        yield Witness(computer, None)
        return
    try:
        listening = computer.accessibility.changes()
        changes = await listening.__aenter__()
    except LinkError:
        # No accessibility bus: pixels are all there is.
        yield Witness(computer, None)
        return
    try:
        yield Witness(computer, changes)
    finally:
        await listening.__aexit__(None, None, None)
