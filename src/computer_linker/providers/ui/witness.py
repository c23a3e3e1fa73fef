"""Determines the effect of an act from the element, from its application's events, and from the pixels.

A change is evidence when it belongs to the act: the element's own, or one of something that does not change by itself.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Accessibility, Change, Changes, Element, ElementId
from computer_linker.errors import ElementNotFound, LinkError
from computer_linker.model.effect import Known
from computer_linker.model.geometry import Point, Rect
from computer_linker.providers.ui.presses import ENTRIES
from computer_linker.providers.ui.restless import LATE_S, Canvas, Key, Restless, key_of
from computer_linker.providers.ui.roles import TEXTS, is_field

# What keys must change in the field that has the focus: its text, caret and selection, or which element has the
# focus.

_MAX_READ = 100_000
_EDITING = frozenset("backspace delete space left right up down home end page_up page_down".split())

Evidence = Callable[[], Awaitable[bool]]
"""Whether the effect can be read now."""


async def evidence_of(reader: Accessibility, one: Element, keys: Sequence[str]) -> Evidence | None:
    """How the effect of these keys will be read in the focused element; None where it may show nowhere."""
    if set(keys[:-1]) - {"shift"}:
        return None
    if keys[-1] == "tab":
        return lambda: _lost_focus(reader, one)
    if not is_field(one) or not (len(keys[-1]) == 1 or keys[-1] in _EDITING):
        return None
    before = await _held(reader, one)
    if before is None:
        return None

    async def changed() -> bool:
        # A field that cannot be read, because its application hangs, shows no effect.
        now = await _held(reader, one)
        return now is not None and now != before

    return changed


async def _held(reader: Accessibility, one: Element) -> tuple[str | None, int | None, tuple[int, int]] | None:
    try:
        text = None if one.is_password else await reader.text(one.id, max_chars=_MAX_READ)
        return text, await reader.text_length(one.id), await reader.caret(one.id)
    except LinkError:
        return None


async def _lost_focus(reader: Accessibility, one: Element) -> bool:
    try:
        return "focused" not in (await reader.element(one.id)).states
    except LinkError:
        return False


SETTLE_S = 0.8
"""GTK 4 acts on an accessibility action about a quarter of a second late."""
LATE_SETTLE_S = 2.0
"""Where another process than the one that shows effects answers, an answer does not tell that the act was processed."""
SLOW_S = 8.0
"""An application that does not answer for this long counts as frozen."""
CALM_S = 3.3
"""What changed with an act must then stay unchanged for this long, and all else too, unless known as calm: many lists are
refreshed every three seconds."""
_BURST_S = 0.5
"""Changes of one element within this time count as one."""
_POLL_S = 0.1
_QUIET_S = 0.2
_LATEST_S = 1.0
_STALL_S = 0.25
"""An application that takes longer than this to answer is busy."""
_WINDOWS = frozenset("frame dialog window alert".split())
_MUST_SHOW = frozenset("check-box radio-button check-menu-item radio-menu-item".split())
_OPENS = frozenset("menu combo-box page-tab".split())
"""A click on one of these must show too, if not in the element itself. A button may do what nothing on the screen shows."""
_OWN_STATES = frozenset("checked pressed selected expanded enabled sensitive showing".split())
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
)
_SURE = ("window:create", "window:destroy", "document:load-complete", "object:state-changed:modal")
"""Windows open and close because of an act, not by themselves."""
_HOVERED = ("object:selection-changed", "object:state-changed:selected", "object:active-descendant-changed")
_MEANT_BY_ENTRY = tuple(kind for kind in _MEANT if kind not in _HOVERED)
"""A menu selects the hovered entry, so a selection is no evidence for a click."""
_ACTIVATED = ("window:activate", "window:deactivate", "object:state-changed:active")
"""The whole window changes its appearance when it becomes active."""
_MAX_REFOCUSED = 4
_REACHED = ("object:state-changed:pressed", "object:state-changed:armed", "object:state-changed:focused")


@dataclass(slots=True)
class Witness:
    """Watches one act. `chatter` are the elements that sent events before it began."""

    computer: Computer
    restless: Restless
    changes: Changes | None
    chatter: set[Key] = field(default_factory=set)
    canvas: Canvas | None = None
    must_show: bool = False
    """Whether the act cannot have an effect that shows nowhere, as a turn of the wheel."""
    is_late: bool = False
    """Whether the application shows effects from elsewhere than where it answers, as browsers do."""
    hovered: Sequence[Rect] = ()
    """Controls that the pointer moved to, other than the element: drawing them as hovered is no effect of the act."""
    was_scrolled: bool = False
    """Whether the element was scrolled into view for the act; it may be scrolled out of it again."""
    evidence: Evidence | None = None
    """Reads the effect, where the act must have one that can be read, as keys in a text field do."""
    is_confirmed: bool = False
    """Whether the application showed the effect."""
    element: Element | None = None
    app: str | None = None
    _first: dict[Key, float] = field(default_factory=dict)
    """When each candidate element first changed."""
    _again: set[Key] = field(default_factory=set)
    _later: dict[Key, tuple[int, float]] = field(default_factory=dict)
    """How often elements changed after those, and when last. Unless each is a clock, any may change by itself at any time."""
    _reached: bool = False
    _refocused: dict[Key, None] = field(default_factory=dict)
    """Elements that gained or lost the focus, which changes their appearance."""
    _activated: bool = False
    _answered: float | None = None
    """When it last answered after a delay: the settle time starts there."""
    _asked: float | None = None
    """When the pending probe was sent."""
    _heard: float = 0.0
    """When the latest answered probe was sent: what was sent to the application before that, it has processed."""
    _is_gone: bool = False

    async def begin(
        self, element: Element | None, app: str | None, area: Rect | None, left: Point | None = None
    ) -> None:
        """Record the state just before the act; `left` is where the pointer was before it moved to the element."""
        self.element, self.app = element, app
        if self.is_late and self.changes is not None and self.restless.acted_within(self.computer, LATE_S):
            await _until_quiet(self.changes)
        self.canvas = Canvas(
            self.computer, self.restless, area,
            own=None if element is None else element.bounds, left=None if element is None else left,
            hovered=self.hovered,
        )  # fmt: skip
        async with anyio.create_task_group() as group:
            if self.changes is not None and app is not None:
                # Once it answers, it has registered the listener; before that it sends no events.
                group.start_soon(self._answers, 1.0)
            await self.canvas.begin()
        if self.changes is not None:
            self.chatter |= {key_of(change) for change in self.changes.taken()}

    async def verdict(self) -> Known:
        """The effect word; returns as soon as the effect is confirmed."""
        settle_s = LATE_SETTLE_S if self.is_late else SETTLE_S
        async with anyio.create_task_group() as group:
            group.start_soon(self._probe)
            is_confirmed = await self._is_confirmed(settle_s)
            group.cancel_scope.cancel()
        self.is_confirmed = is_confirmed or await self._own_changed()
        if self.is_confirmed:
            return "confirmed"
        if self.app is not None and (self._answered is None or not await self._answers(1.0)):
            return "unverifiable"
        if self.evidence is not None:
            # The field is as it was; where something else changed, the key may have been a shortcut.
            return "unverifiable" if self._first else "suspected_noop"
        if self.element is not None and self.element.role in _MUST_SHOW:
            # A radio button that is on already stays so.
            is_on = "radio" in self.element.role and "checked" in self.element.states
            return "unverifiable" if is_on else "suspected_noop"
        changed = await self._pixels_changed()
        if changed:
            return "confirmed"
        can_tell = changed is False and self._answered is not None and not self._reached and not self._again
        must_show = self.must_show or (self.element is not None and self.element.role in _OPENS)
        return "suspected_noop" if can_tell and must_show else "unverifiable"

    @property
    def _is_text(self) -> bool:
        return self.element is not None and self.element.role in TEXTS

    async def _is_confirmed(self, settle_s: float) -> bool:
        started = time.monotonic()
        while True:
            if self.evidence is not None and await self.evidence():
                return True
            if self._is_gone or any(
                self._is_sure(change) for change in ([] if self.changes is None else self.changes.taken())
            ):
                return True
            if self._is_text or (self.element is not None and self.element.role in _MUST_SHOW):
                if await self._own_changed():
                    return True
            elif self.evidence is None and (key := await self._stayed_unchanged()) is not None:
                if await self._can_show_in(key):
                    return True
                self._again.add(key)
            left = self._deadline(started, settle_s) - time.monotonic()
            if left <= 0 and (time.monotonic() > started + SLOW_S or await self._is_free()):
                return False
            await self._pause(min(max(left, _STALL_S), _POLL_S))

    async def _is_free(self) -> bool:
        """Whether the application answers at once: it may have processed the act only now."""
        return self.app is None or await self._answers(_STALL_S)

    def _deadline(self, started: float, settle_s: float) -> float:
        """The settle time begins when the application answers: until then it has not processed the act."""
        is_busy = self._asked is not None and time.monotonic() - self._asked > _STALL_S
        if self.app is not None and (self._answered is None or is_busy):
            return started + SLOW_S
        waiting = [
            at + CALM_S + _POLL_S for key, at in self._first.items() if key not in self._again and self.evidence is None
        ]
        return max((self._answered or started) + settle_s, *waiting, started)

    def _is_sure(self, change: Change) -> bool:
        """Whether this change alone proves the effect; a candidate is recorded."""
        if self.app is not None and change.app != self.app:
            return False
        key = key_of(change)
        is_own = self.element is not None and key == (self.element.id.app, self.element.id.path)
        if change.kind.startswith("object:state-changed:focused"):
            self._refocused[key] = None
        self._activated = self._activated or change.kind.lower().startswith(_ACTIVATED)
        if change.kind.startswith(_REACHED):
            self._reached = self._reached or is_own or key not in self.chatter
        if is_own and self.was_scrolled and change.kind.startswith("object:state-changed:showing"):
            return False
        meant = _MEANT_BY_ENTRY if self.element is not None and self.element.role in ENTRIES else _MEANT
        if change.kind.startswith(_SURE) and key not in self.chatter:
            return True
        if not change.kind.startswith(meant) or self._is_text:
            return False
        if is_own:
            return self.element is not None and self.element.role not in _MUST_SHOW
        self._record(key, change)
        return False

    def _record(self, key: Key, change: Change) -> None:
        """Take an element that changed with the act for a candidate, and note those that change later."""
        now = time.monotonic()
        # One that was too busy to answer in between may still send the rest of its first change.
        is_later = any(now - at > _BURST_S and (self.app is None or self._heard > at) for at in self._first.values())
        if is_later:
            times, last = self._later.get(key, (0, 0.0))
            self._later[key] = (times + (now - last > _BURST_S), now)
        if key in self.chatter or self.restless.is_restless(key):
            return
        if is_later and not self.restless.is_calm(key):
            self.restless.saw([change])
            if now - self._first.get(key, now) > _BURST_S:
                self._again.add(key)
        else:
            self._first.setdefault(key, now)

    async def _stayed_unchanged(self) -> Key | None:
        """What changed with the act and is known, or was observed, to stay unchanged otherwise."""
        now = time.monotonic()
        for key, at in self._first.items():
            if key in self._again:
                continue
            if self.restless.is_calm(key):
                return key
            if now - at >= CALM_S and not await self._is_erratic():
                self.restless.trust(key)
                return key
        return None

    async def _is_erratic(self) -> bool:
        """Whether something changed once after the candidates, where the act can show: then any may change by itself."""
        once = [key for key, (times, _last) in self._later.items() if times == 1]
        for key in once:
            if await self._can_show_in(key):
                return True
        return False

    async def _can_show_in(self, key: Key) -> bool:
        """Whether an act can show there: one in a page shows in the page; a browser's own tabs tell how much memory it uses."""
        if not self.is_late or self.element is None or not await self._is_in_page(self.element.id):
            return True
        return await self._is_in_page(ElementId(*key))

    async def _is_in_page(self, at: ElementId) -> bool:
        try:
            return any(one.role == "document-web" for one in await self.computer.accessibility.ancestors(at))
        except LinkError:
            return False

    async def _own_changed(self) -> bool:
        """Whether the element itself changed; for a text field, gaining the focus counts."""
        if self.element is None:
            return False
        try:
            now = await self.computer.accessibility.element(self.element.id)
        except ElementNotFound:
            # It disappeared with the act, as a menu entry does.
            return True
        except LinkError:
            return False
        was, is_ = set(self.element.states), set(now.states)
        if self.was_scrolled:
            was, is_ = was - {"showing"}, is_ - {"showing"}
        if self._is_text:
            return "focused" in is_ - was
        return bool((was ^ is_) & _OWN_STATES) or (now.name, now.value) != (self.element.name, self.element.value)

    async def _pixels_changed(self) -> bool | None:
        """Whether pixels changed outside the control and the elements that gained or lost the focus."""
        if self.canvas is None or self._activated:
            return None
        own = [*self.hovered]
        own += [] if self.element is None or self.element.bounds is None else [self.element.bounds]
        for app, path in list(self._refocused)[:_MAX_REFOCUSED]:
            try:
                one = await self.computer.accessibility.element(ElementId(app, path))
            except LinkError:
                continue
            # A window that contains everything is no control.
            own += [] if one.bounds is None or one.role in _WINDOWS else [one.bounds]
        return await self.canvas.changed(own)

    async def _probe(self) -> None:
        """Query the application continuously: it may process the act only after it answered once."""
        while self.app is not None:
            self._asked = time.monotonic()
            if not await self._answers(SLOW_S):
                # It may have ended with the act, as a dialog in its own process does.
                self._is_gone = not await self.is_running()
                return
            now = time.monotonic()
            if self._answered is None or now - self._asked > _STALL_S:
                self._answered = now
            self._heard, self._asked = self._asked, None
            await anyio.sleep(_POLL_S)

    async def is_running(self) -> bool:
        """Whether the application exists, even if it does not answer."""
        apps = await self.computer.accessibility.applications()
        return any(app.id == self.app for app in apps)

    async def _answers(self, timeout_s: float) -> bool:
        assert self.app is not None
        try:
            return await self.computer.accessibility.is_alive(self.app, timeout_s=timeout_s)
        except LinkError:
            return False

    async def _pause(self, seconds: float) -> None:
        if self.changes is None:
            await anyio.sleep(seconds)
        else:
            await self.changes.wait(seconds)


async def _until_quiet(changes: Changes) -> None:
    """Wait until no event has come for a moment: what comes late belongs to the act before, perhaps of another client."""
    deadline = time.monotonic() + _LATEST_S
    while time.monotonic() < deadline and await changes.wait(_QUIET_S):
        changes.taken()


@asynccontextmanager
async def witness(computer: Computer, restless: Restless, *, wanted: bool) -> AsyncIterator[Witness]:
    """A witness that listens from now on, so that unrelated events are known before the act begins."""
    if not wanted:
        yield Witness(computer, restless, None)
        return
    watch = Witness(computer, restless, await restless.listen(computer))
    try:
        yield watch
    finally:
        with anyio.CancelScope(shield=True):
            await restless.rest(computer, is_owed=not watch.is_confirmed)
