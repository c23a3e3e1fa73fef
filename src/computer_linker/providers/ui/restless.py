"""Learns what changes by itself on a desktop, so that it is not taken as evidence for an act."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Change, Changes
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Point, Rect
from computer_linker.services import Services

# Compares two captures of the same area.

Tiles = frozenset[tuple[int, int]]
"""Squares of the area by column and row, so that a clock in one corner neither hides nor fakes a change in another."""
TILE = 16
_NEAR = (-2, -1, 0, 1, 2)


def changed_tiles(before: Pixmap, after: Pixmap) -> Tiles | None:
    """The squares that differ; None when the two are not of the same area and size."""
    if (before.width, before.height, before.stride, before.area) != (
        after.width,
        after.height,
        after.stride,
        after.area,
    ):
        return None
    if before.data == after.data:
        return frozenset()
    found: set[tuple[int, int]] = set()
    for row in range(after.height):
        was, is_ = _row(before, row), _row(after, row)
        if was != is_:
            found |= {(column, row // TILE) for column in _columns(was, is_)}
    return frozenset(found)


def tiles_of(pixmap: Pixmap, bounds: Rect, margin: int) -> Tiles:
    """The squares that a desktop rectangle touches, with a margin around it."""
    across, down = pixmap.width / pixmap.area.width, pixmap.height / pixmap.area.height
    left, top = (bounds.x - margin - pixmap.area.x) * across, (bounds.y - margin - pixmap.area.y) * down
    right, bottom = left + (bounds.width + 2 * margin) * across, top + (bounds.height + 2 * margin) * down
    columns = range(int(left // TILE), int(right // TILE) + 1)
    rows = range(int(top // TILE), int(bottom // TILE) + 1)
    return frozenset((column, row) for column in columns for row in rows)


def unconnected(tiles: Tiles, restless: Tiles) -> Tiles:
    """The squares not connected to restless ones: what moves across the screen is elsewhere each time."""
    left, spreading = set(tiles), list(restless)
    while spreading and left:
        column, row = spreading.pop()
        near = {(column + across, row + down) for across in _NEAR for down in _NEAR} & left
        left -= near
        spreading += near
    return frozenset(left)


def _row(pixmap: Pixmap, row: int) -> bytes:
    start = row * pixmap.stride
    return pixmap.data[start : start + pixmap.width * 4]


def _columns(was: bytes, is_: bytes) -> list[int]:
    step = TILE * 4
    return [
        start // step for start in range(0, len(is_), step) if was[start : start + step] != is_[start : start + step]
    ]


Key = tuple[str, str]
"""An application and one of its elements."""
_KEPT = 2_000
_AREAS = 64
_BETWEEN_S = 20.0
LATE_S = 1.5
"""For this long after an act, a change may still be its effect."""
_APART_S = 0.25
_OFTEN = 2
_FORGOTTEN_S = 15.0
"""What has not changed by itself for this long is unknown again: a stopped clock is none."""
_ENOUGH_S = 4.0


def key_of(change: Change) -> Key:
    return change.app, change.path


@dataclass(slots=True)
class _Subscription:
    """A subscription that continues for a while after an act."""

    context: AbstractAsyncContextManager[Changes]
    changes: Changes
    acted_at: float = 0.0
    is_owed: bool = False
    """Whether the last act showed no effect, so that one may still come."""
    ends: asyncio.TimerHandle | None = None


class Restless:
    """Elements and screen areas that change without an act, and elements known to stay unchanged."""

    def __init__(self, own: Computer | None = None) -> None:
        self._own = own
        self._talkers: dict[Key, tuple[int, float]] = {}
        self._calm: dict[Key, None] = {}
        self._quiet_s = 0.0
        """How long events were observed without an act, right before the current one."""
        self._talked: set[str] = set()
        """The applications that sent events in that time."""
        self._tiles: dict[Rect, Tiles] = {}
        self._ears: dict[Computer, _Subscription] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.use(Computer))

    async def listen(self, computer: Computer) -> Changes | None:
        """Subscribe to events and learn from those since the last act. None where no application sends any."""
        ear = self._ears.get(computer)
        if ear is None:
            if not computer.capabilities().has("accessibility"):
                return None
            context = computer.accessibility.changes()
            try:
                ear = self._ears[computer] = _Subscription(context, await context.__aenter__())
            except LinkError:
                # No accessibility bus: only pixels are available.
                return None
        if ear.ends is not None:
            ear.ends.cancel()
        quiet_from = ear.acted_at + LATE_S
        heard = [change for change in ear.changes.taken() if change.at > quiet_from]
        if ear.is_owed:
            heard = self._without_late_effects(heard)
        self._quiet_s = time.monotonic() - quiet_from if ear.acted_at else 0.0
        self._talked = {change.app for change in heard}
        self.saw(heard)
        return ear.changes

    def _without_late_effects(self, changes: list[Change]) -> list[Change]:
        """All but the first change of each element that is known to change with acts only."""
        first: dict[Key, float] = {}
        for change in changes:
            first.setdefault(key_of(change), change.at)
        return [one for one in changes if key_of(one) not in self._calm or one.at - first[key_of(one)] > _APART_S]

    async def rest(self, computer: Computer, *, is_owed: bool = False) -> None:
        """Continue listening for a while after an act, to learn what changes without one."""
        ear = self._ears.get(computer)
        if ear is not None and computer is not self._own:
            await self._close(computer)
        elif ear is not None:
            ear.acted_at, ear.is_owed = time.monotonic(), is_owed
            ear.ends = asyncio.get_running_loop().call_later(_BETWEEN_S, self._end, computer)

    def acted_within(self, computer: Computer, seconds: float) -> bool:
        """True when the previous act here ended less than this long ago."""
        ear = self._ears.get(computer)
        return ear is not None and time.monotonic() - ear.acted_at < seconds

    def saw(self, changes: Iterable[Change]) -> None:
        """Learn changes that no act caused. A single one is ignored; repeated ones make an element restless."""
        for change in changes:
            key = key_of(change)
            times, last = self._talkers.pop(key, (0, 0.0))
            times = 0 if change.at - last > _FORGOTTEN_S else times
            self._talkers[key] = (times + (change.at - last > _APART_S), change.at)
            if times + 1 >= _OFTEN:
                self._calm.pop(key, None)
        _bound(self._talkers, _KEPT)

    def trust(self, key: Key) -> None:
        """Learn that an element changed with an act and then stayed unchanged."""
        self._calm[key] = None
        _bound(self._calm, _KEPT)

    def is_restless(self, key: Key) -> bool:
        """True for an element that lately changed by itself more than once."""
        times, last = self._talkers.get(key, (0, 0.0))
        return times >= _OFTEN and time.monotonic() - last < _FORGOTTEN_S

    def is_calm(self, key: Key) -> bool:
        """True for an element that stayed unchanged after an act, or whose application was silent right before this one."""
        was_silent = self._quiet_s >= _ENOUGH_S and key[0] not in self._talked and key not in self._talkers
        return (key in self._calm or was_silent) and not self.is_restless(key)

    def saw_tiles(self, area: Rect, tiles: Tiles) -> None:
        """Learn which parts of an area change by themselves."""
        self._tiles[area] = self._tiles.pop(area, frozenset()) | tiles
        _bound(self._tiles, _AREAS)

    def tiles(self, area: Rect) -> Tiles:
        return self._tiles.get(area, frozenset())

    async def aclose(self) -> None:
        """Stop listening."""
        for computer in list(self._ears):
            await self._close(computer)

    def _end(self, computer: Computer) -> None:
        task = asyncio.ensure_future(self._close(computer))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, computer: Computer) -> None:
        ear = self._ears.pop(computer, None)
        if ear is not None:
            if ear.ends is not None:
                ear.ends.cancel()
            with suppress(LinkError):
                await ear.context.__aexit__(None, None, None)


def _bound(kept: dict[Key, tuple[int, float]] | dict[Key, None] | dict[Rect, Tiles], at_most: int) -> None:
    while len(kept) > at_most:
        del kept[next(iter(kept))]  # type: ignore[arg-type]  # one of three dicts, whose own key it is


# Detects pixels that changed with an act, ignoring those that change by themselves.

_STILL_S = 0.4
_FRAME_S = 0.017
_WATCH_S = 3.3
_STEP_S = 0.1
_HOVER_MARGIN = 8


@dataclass(slots=True)
class Canvas:
    """One area of the desktop."""

    computer: Computer
    restless: Restless
    area: Rect | None
    own: Rect | None = None
    """The control that is acted on."""
    left: Point | None = None
    """Where the pointer was before it moved to that control."""
    hovered: Sequence[Rect] = ()
    """Controls that the pointer moved to, other than the one that is acted on."""
    before: Pixmap | None = None

    async def begin(self) -> None:
        """Capture the area once it is still, or after a while; what changes meanwhile changes by itself.

        What the pointer came from and went to fades for a fifth of a second in GTK. That is not waited for: neither is evidence.
        """
        deadline = time.monotonic() + _STILL_S
        seen = await self._capture()
        while seen is not None and time.monotonic() < deadline:
            await anyio.sleep(_FRAME_S)
            again = await self._capture()
            if again is None or not self._learn(seen, again):
                break
            seen = again
        self.before = seen

    async def changed(self, own: Sequence[Rect]) -> bool | None:
        """Whether something outside these controls changed permanently; None when that cannot be decided."""
        after = await self._capture()
        tiles = None if self.before is None or after is None else changed_tiles(self.before, after)
        if tiles is None or after is None or self.area is None:
            return None
        for bounds in own:
            # Hovering or focusing a control changes its appearance.
            tiles -= tiles_of(after, bounds, _HOVER_MARGIN)
        if not self._elsewhere(after, tiles):
            return None if tiles else False
        is_erratic = await self._watch(after)
        return True if not is_erratic and self._elsewhere(after, tiles) else None

    async def _watch(self, seen: Pixmap) -> bool:
        """Learn what keeps changing: a clock ticks again by then, and so does a list that is refreshed every three seconds.

        True when something changed once: then anything may change by itself at any time.
        """
        deadline, last = time.monotonic() + _WATCH_S, seen
        times: dict[tuple[int, int], list[float]] = {}
        while time.monotonic() < deadline:
            await anyio.sleep(_STEP_S)
            again, now = await self._capture(), time.monotonic()
            if again is None:
                continue
            self._learn(seen, again)
            for tile in self._learn(last, again):
                at = times.setdefault(tile, [])
                # A control may take two frames to draw one change.
                at += [now] if not at or now - at[-1] > 2 * _APART_S else []
            last = again
        often = frozenset(tile for tile, at in times.items() if len(at) > 1)
        return bool(unconnected(frozenset(times) - often, often))

    def _learn(self, seen: Pixmap, again: Pixmap) -> Tiles:
        """What changed by itself meanwhile, apart from what the pointer came from and went to."""
        tiles = changed_tiles(seen, again) or frozenset()
        for bounds in (*self.hovered, *(() if self.own is None else (self.own,))):
            tiles -= tiles_of(again, bounds, _HOVER_MARGIN)
        tiles = unconnected(tiles, self._left(again))
        if tiles and self.area is not None:
            self.restless.saw_tiles(self.area, tiles)
        return tiles

    def _elsewhere(self, seen: Pixmap, tiles: Tiles) -> Tiles:
        """Those that are connected neither to what changes by itself nor to what the pointer left."""
        known = frozenset() if self.area is None else self.restless.tiles(self.area)
        return unconnected(tiles, self._left(seen) | known)

    def _left(self, seen: Pixmap) -> Tiles:
        if self.left is None:
            return frozenset()
        return tiles_of(seen, Rect(x=int(self.left.x), y=int(self.left.y), width=1, height=1), 0)

    async def _capture(self) -> Pixmap | None:
        if self.area is None or self.area.is_empty or not self.computer.capabilities().has("screen"):
            return None
        try:
            return await self.computer.screen.capture(self.area)
        except LinkError:
            return None
