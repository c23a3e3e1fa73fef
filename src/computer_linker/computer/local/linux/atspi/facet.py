"""The accessibility facet of a Linux desktop: trees, single elements, actions and changes over one connection."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from computer_linker.computer.facets.accessibility import (
    Application,
    Element,
    ElementId,
    Tree,
    TreeLimits,
)
from computer_linker.computer.local.linux.atspi.acts import Acts
from computer_linker.computer.local.linux.atspi.apps import Apps, hidden_trees
from computer_linker.computer.local.linux.atspi.details import (
    LongLists,
    correct_qt,
    place,
    query_extents,
    query_labels,
    query_values,
    shows,
    worth_placing,
)
from computer_linker.computer.local.linux.atspi.element_cache import Memory
from computer_linker.computer.local.linux.atspi.events import ENOUGH_FOR_BULK, Listening
from computer_linker.computer.local.linux.atspi.libreoffice import is_found_at, is_libreoffice, without_doubled_menus
from computer_linker.computer.local.linux.atspi.lineage import Lineages, describe
from computer_linker.computer.local.linux.atspi.names import (
    ACCESSIBLE,
    COLLECTION,
    Rule,
    by_roles,
    by_states,
)
from computer_linker.computer.local.linux.atspi.nodes import (
    element_id,
    from_utf16,
    to_utf16,
    uses_utf16_offsets,
)
from computer_linker.computer.local.linux.atspi.places import AS_SAID, Places, is_window_relative
from computer_linker.computer.local.linux.atspi.reading import Reading
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, get, silent
from computer_linker.computer.subscription import Subscription
from computer_linker.errors import ElementNotFound

if TYPE_CHECKING:
    from computer_linker.computer.facets.windows import Windows
    from computer_linker.model.geometry import Window

_QUIET_AFTER_S = 20.0
_MAX_FOCUSED = 6
_MAX_COUNTED = 1_000_000
_MAX_MATCHES = 200
_COLLECTS = ("gtk", "qt", "chromium", "gecko")


class AtspiAccessibility:
    """AT-SPI on one session bus. Connects on first use."""

    def __init__(self, session_address: str, windows: "Windows", *, on_wayland: bool = False) -> None:
        self._address = session_address
        self._windows = windows
        self._opening = asyncio.Lock()
        self._wire: Wire | None = None
        self._places = Places(windows, on_wayland=on_wayland)
        self._memory = Memory()
        self._lineages = Lineages()
        self._quiet: asyncio.TimerHandle | None = None

    async def applications(self) -> list[Application]:
        """The applications on the bus and their windows."""
        await self._connected()
        apps = await self._apps.all()
        self._memory.keep_only(apps)
        return apps

    async def hidden(self) -> list[str]:
        """What to enable for windows without a tree."""
        return hidden_trees(await self._places.windows(), await self.applications())

    async def tree(self, root: ElementId, limits: TreeLimits = TreeLimits()) -> Tree:
        """The elements at and below the root, with bounds and values of visible ones."""
        wire = await self._connected()
        app = await self._apps.find(root.app)
        if limits.bulk:
            await self._apps.wake(app)
            await self._served_in_bulk(app)
        if limits.roles and (found := await self._by_roles(wire, app, root, limits)) is not None:
            return found
        reading = Reading(wire, app, limits, self._memory.of(app))
        # The window system is queried while the application answers.
        windows = asyncio.create_task(self._places.windows_for(app)) if limits.bounds else None
        try:
            elements = await self._read(wire, app, root, reading)
            showing = [one for one in elements if shows(one, app)]
            if limits.roles:
                showing = [one for one in showing if one.role in limits.roles or one.parent == app.root]
            await asyncio.gather(
                self._placed(wire, app, elements, showing, reading, windows) if windows is not None else _nothing(),
                self._valued(wire, elements, showing, reading) if limits.values else _nothing(),
                query_labels(wire, showing, reading.left_s()),
            )
        finally:
            if windows is not None:
                windows.cancel()
        self._lineages.learn(elements)
        wanted = [one for one in elements if not limits.roles or one.role in limits.roles]
        return Tree(root, wanted, tuple(sorted(reading.cut_by)))

    async def _read(self, wire: Wire, app: Application, root: ElementId, reading: Reading) -> list[Element]:
        elements = await reading.run(root)
        if not elements:
            if not await self.is_alive(app.id):
                raise silent()
            raise ElementNotFound("The element is gone.")
        if elements[0].parent is None and root != app.root:
            above = (await wire.call_all([get(root, ACCESSIBLE, "Parent")], reading.left_s()))[0]
            elements[0].parent = None if isinstance(above, Fault) else element_id(above)
        correct_qt(elements, app)
        return without_doubled_menus(elements) if is_libreoffice(app) else elements

    async def _by_roles(self, wire: Wire, app: Application, root: ElementId, limits: TreeLimits) -> Tree | None:
        """The elements of these roles by the application's own search; None where it has none."""
        limit = min(limits.max_nodes, _MAX_MATCHES)
        found = await self._matches(wire, app, root, by_roles(limits.roles), limit, limits.time_s)
        if found is None:
            return None
        return Tree(root, [await self.element(at) for at in found], ("nodes",) if len(found) >= limit else ())

    async def _placed(
        self,
        wire: Wire,
        app: Application,
        elements: list[Element],
        showing: list[Element],
        reading: Reading,
        window_query: "asyncio.Task[list[Window] | None]",
    ) -> None:
        lists = LongLists(elements if is_window_relative(app) else ())
        extents = await query_extents(wire, lists.first(worth_placing(showing, app)), reading.left_s())
        extents |= await query_extents(wire, lists.then(extents), reading.left_s())
        windows = await window_query
        placements = await self._places.placements(app, elements, extents, windows)
        root = elements[0]
        if root.parent not in (None, app.root) and not self._places.is_plain(app):
            # The root is somewhere below its window: its ancestors determine its placement.
            upwards = [root, *await self._lineages.climb(wire, app, root.id)]
            theirs = await query_extents(wire, upwards, 2.0)
            placements.setdefault(root.id, await self._places.nearest(app, upwards, theirs))
        place(elements, extents, placements)

    async def _valued(self, wire: Wire, elements: list[Element], showing: list[Element], reading: Reading) -> None:
        names = {one.id: one.name for one in elements if one.name}
        await query_values(wire, showing, reading.left_s(), names)

    async def element(self, element_id: ElementId) -> Element:
        """One element, without the cache."""
        wire = await self._connected()
        app = await self._apps.find(element_id.app)
        one = await describe(wire, element_id)
        if one.role == "list-item" and one.parent is not None and app.toolkit.lower() == "qt":
            correct_qt([await describe(wire, one.parent), one], app)
        is_plain = self._places.is_plain(app)
        upwards = (
            [one] if is_plain and not is_libreoffice(app) else [one, *await self._lineages.climb(wire, app, element_id)]
        )
        extents = await query_extents(wire, upwards, 2.0)
        if one.id in extents and shows(one, app):
            how = AS_SAID if is_plain else await self._places.nearest(app, upwards, extents)
            one.bounds = how(extents[one.id])
        if one.bounds is not None and is_libreoffice(app):
            middle = one.bounds.center
            one.bounds = one.bounds if await is_found_at(wire, upwards, int(middle.x), int(middle.y)) else None
        await query_values(wire, [one], 2.0)
        return one

    async def ancestors(self, element_id: ElementId) -> list[Element]:
        """Its ancestors, nearest first, its window last."""
        wire = await self._connected()
        app = await self._apps.find(element_id.app)
        found = await self._lineages.climb(wire, app, element_id)
        extents = await query_extents(wire, found, 2.0)
        top_down = list(reversed(found))
        place(top_down, extents, await self._places.placements(app, top_down, extents))
        return found

    async def focused(self, app: str | None = None) -> Element | None:
        """The deepest element in the focused state."""
        wire = await self._connected()
        for one in await self._candidates(app):
            quick = await self._focused_by_query(wire, one)
            if quick is None:
                tree = await self.tree(one.root, TreeLimits(bounds=False, values=False, cells=False, time_s=2.0))
                quick = [element.id for element in tree.elements if "focused" in element.states]
            found = [await self.element(at) for at in reversed(quick[-_MAX_FOCUSED:])]
            # Qt's combo boxes keep an invisible entry focused; it is marked transient.
            lasting = [element for element in found if "transient" not in element.states]
            if found:
                return (lasting or found)[0]
        return None

    async def text(self, element_id: ElementId, *, max_chars: int = 100_000) -> str | None:
        await self._connected()
        return await self._acts.text(element_id, max_chars)

    async def text_length(self, element_id: ElementId) -> int | None:
        text = await self._utf16_text(element_id)
        return await self._acts.text_length(element_id) if text is None else len(text)

    async def caret(self, element_id: ElementId) -> tuple[int, int]:
        text = await self._utf16_text(element_id)
        start, end = await self._acts.caret(element_id)
        return (start, end) if text is None else (from_utf16(text, start), from_utf16(text, end))

    async def set_text(self, element_id: ElementId, text: str, *, caret: int | None = None) -> bool:
        await self._connected()
        if caret is not None and uses_utf16_offsets(await self._apps.find(element_id.app)):
            caret = to_utf16(text, caret)
        return await self._acts.set_text(element_id, text, caret)

    async def _utf16_text(self, element_id: ElementId) -> str | None:
        """The text, where the toolkit counts in something other than characters; a password is left as it counts it."""
        await self._connected()
        if not uses_utf16_offsets(await self._apps.find(element_id.app)):
            return None
        return await self._acts.text(element_id, _MAX_COUNTED)

    async def set_value(self, element_id: ElementId, value: float) -> float:
        await self._connected()
        return await self._acts.set_value(element_id, value)

    async def actions(self, element_id: ElementId) -> list[str]:
        await self._connected()
        return await self._acts.actions(element_id)

    async def perform(self, element_id: ElementId, action: int = 0) -> bool:
        await self._connected()
        return await self._acts.perform(element_id, action)

    async def select_child(self, element_id: ElementId, index: int) -> bool:
        await self._connected()
        return await self._acts.select_child(element_id, index)

    async def focus(self, element_id: ElementId) -> bool:
        await self._connected()
        return await self._acts.focus(element_id)

    async def scroll_to(self, element_id: ElementId) -> bool:
        await self._connected()
        return await self._acts.scroll_to(element_id)

    async def is_alive(self, app: str, *, timeout_s: float = 1.0) -> bool:
        """True when its root still answers."""
        wire = await self._connected()
        root = (await self._apps.find(app)).root
        answer = (await wire.call_all([get(root, ACCESSIBLE, "ChildCount")], timeout_s))[0]
        return not isinstance(answer, Fault)

    @asynccontextmanager
    async def changes(self, kinds: Sequence[str] = ()) -> AsyncIterator[Subscription]:
        """Change events until the context exits."""
        await self._connected()
        listening = self._listening
        subscription = await listening.add(tuple(kinds))
        try:
            yield subscription
        finally:
            listening.remove(subscription)

    async def aclose(self) -> None:
        """Close the connection."""
        if self._quiet is not None:
            self._quiet.cancel()
        if self._wire is not None:
            wire, self._wire = self._wire, None
            await wire.aclose()

    async def _connected(self) -> Wire:
        async with self._opening:
            if self._wire is None or not self._wire.is_connected:
                self._wire = await Wire.open(self._address)
                self._apps = Apps(self._wire)
                self._acts = Acts(self._wire)
                self._listening = Listening(self._wire)
        self._deregister_later()
        return self._wire

    def _deregister_later(self) -> None:
        """Deregister after a while without use: applications then send no events, and one that starts meanwhile builds
        its bulk cache only on the next registration, complete."""
        if self._quiet is not None:
            self._quiet.cancel()
        self._quiet = asyncio.get_running_loop().call_later(_QUIET_AFTER_S, self._deregister)

    def _deregister(self) -> None:
        if self._wire is None or not self._wire.is_connected:
            return
        if self._listening.is_idle:
            self._listening.forget()
        else:
            self._deregister_later()

    async def _served_in_bulk(self, app: Application) -> None:
        """Register once, and wait until applications have processed it.

        An application builds its bulk cache at that moment and adds little to it later, so all are woken before.
        """
        if not self._listening.is_registered(ENOUGH_FOR_BULK):
            for other in await self._apps.all():
                await self._apps.wake(other)
        if await self._listening.register(ENOUGH_FOR_BULK):
            deadline = time.monotonic() + 0.4
            # No event reports that an application has processed it, so it is polled.
            while time.monotonic() < deadline and not await self._listening.is_served(app.id):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def _candidates(self, app: str | None) -> list[Application]:
        apps = await self.applications()
        if app is not None:
            return [one for one in apps if one.id == app]
        active = [one for one in apps if any("active" in window.states for window in one.windows)]
        if len(active) == 1:
            return active
        front = await self._windows.focused()
        return [one for one in apps if front is not None and one.pid == front.pid] or active

    async def _focused_by_query(self, wire: Wire, app: Application) -> list[ElementId] | None:
        return await self._matches(wire, app, app.root, by_states("focused"), 16, 1.0)

    async def _matches(
        self, wire: Wire, app: Application, root: ElementId, rule: Rule, at_most: int, timeout_s: float
    ) -> list[ElementId] | None:
        """Use the application's own search; None where it has none. LibreOffice would hang on its cells."""
        if app.toolkit.lower() not in _COLLECTS or is_window_relative(app) or is_libreoffice(app):
            return None
        request = Request(root, COLLECTION, "GetMatches", "(aiia{ss}iaiiasib)uib", (rule, 1, at_most, True))
        answer = (await wire.call_all([request], timeout_s))[0]
        if isinstance(answer, Fault):
            return None
        return [at for pair in answer if (at := element_id(pair)) is not None]


async def _nothing() -> None:
    """A no-op for a part that was not requested."""
