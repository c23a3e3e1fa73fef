"""Detects pixels that changed with an act, ignoring those that change by themselves."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Rect
from computer_linker.providers.ui.restless import Restless, Tiles, changed_tiles, tiles_of, unconnected

_STILL_S = 0.4
_FRAME_S = 0.017
_WATCH_S = 2.2
_STEP_S = 0.1
_HOVER_MARGIN = 8


@dataclass(slots=True)
class Canvas:
    """One area of the desktop."""

    computer: Computer
    restless: Restless
    area: Rect | None
    before: Pixmap | None = None

    async def begin(self) -> None:
        """Capture the area once it is still, or after a while; what changes meanwhile changes by itself."""
        deadline = time.monotonic() + _STILL_S
        seen = await self._capture()
        while seen is not None and time.monotonic() < deadline:
            await anyio.sleep(_FRAME_S)
            again = await self._capture()
            if again is None or again.data == seen.data:
                break
            self._learn(seen, again)
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
        if not unconnected(tiles, self.restless.tiles(self.area)):
            return None if tiles else False
        await self._watch(after)
        return True if unconnected(tiles, self.restless.tiles(self.area)) else None

    async def _watch(self, seen: Pixmap) -> None:
        """Learn what keeps changing: a clock ticks again by then."""
        deadline = time.monotonic() + _WATCH_S
        while time.monotonic() < deadline:
            await anyio.sleep(_STEP_S)
            again = await self._capture()
            if again is not None:
                self._learn(seen, again)

    def _learn(self, seen: Pixmap, again: Pixmap) -> None:
        tiles: Tiles | None = changed_tiles(seen, again)
        if tiles and self.area is not None:
            self.restless.saw_tiles(self.area, tiles)

    async def _capture(self) -> Pixmap | None:
        if self.area is None or self.area.is_empty or not self.computer.capabilities().has("screen"):
            return None
        try:
            return await self.computer.screen.capture(self.area)
        except LinkError:
            return None
