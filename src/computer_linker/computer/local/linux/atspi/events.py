"""Change events of applications: subscribed while there is a listener, and for a short while after."""

import time
from typing import TYPE_CHECKING

from computer_linker.computer.facets.accessibility import Change, ElementId
from computer_linker.computer.local.linux.atspi.names import CACHE, CACHE_PATH, REGISTRY, REGISTRY_PATH
from computer_linker.computer.local.linux.atspi.nodes import element_id
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire
from computer_linker.computer.subscription import Subscription

if TYPE_CHECKING:
    from dbus_fast import Message

ENOUGH_FOR_BULK = ("object:state-changed:focused",)
"""Toolkits serve their whole tree in one reply only while some event is registered."""
EVERYTHING = (
    "object:state-changed",
    "object:text-changed",
    "object:children-changed",
    "object:property-change",
    "object:selection-changed",
    "object:value-changed",
    "object:active-descendant-changed",
    "window:activate",
    "window:deactivate",
    "window:create",
    "window:destroy",
    "document:load-complete",
)
_EVENTS = "org.a11y.atspi.Event."


class Listening:
    """Registrations with the accessibility registry, and the listeners they serve."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._registered: set[str] = set()
        self._matched = False
        self._listeners: set[Subscription] = set()

    async def register(self, events: tuple[str, ...]) -> bool:
        """Register these events; True when some were new."""
        wanted = [event for event in events if event not in self._registered]
        if not wanted:
            return False
        registry = ElementId(REGISTRY, REGISTRY_PATH)
        answers = await self._wire.call_all(
            [Request(registry, REGISTRY, "RegisterEvent", "sass", (event, [], "")) for event in wanted]
        )
        older = [event for event, answer in zip(wanted, answers, strict=True) if isinstance(answer, Fault)]
        await self._wire.call_all([Request(registry, REGISTRY, "RegisterEvent", "s", (event,)) for event in older])
        # The registry notifies applications after its reply. Once it has replied to a second call, the notification is
        # sent, so any later call to an application arrives after it.
        await self._wire.call_all([Request(registry, REGISTRY, "GetRegisteredEvents")])
        self._registered.update(wanted)
        return True

    def is_registered(self, events: tuple[str, ...]) -> bool:
        """True when these events are registered already."""
        return self._registered.issuperset(events)

    def forget(self) -> None:
        """Deregister all events, so that applications stop sending."""
        registry = ElementId(REGISTRY, REGISTRY_PATH)
        names, self._registered = sorted(self._registered), set()
        for name in names:
            self._wire.send(Request(registry, REGISTRY, "DeregisterEvent", "s", (name,)))

    async def is_served(self, app: str) -> bool:
        """True once the application has processed the registration."""
        answer = (await self._wire.call_all([Request(ElementId(app, CACHE_PATH), CACHE, "GetItems")]))[0]
        return not (isinstance(answer, Fault) and answer.is_gone)

    async def add(self, kinds: tuple[str, ...] = ()) -> Subscription:
        """Add a listener; it receives all events from now on."""
        subscription = Subscription(kinds)
        self._listeners.add(subscription)
        if not self._matched:
            self._matched = True
            self._wire.listen(self._on_message)
            for kind in ("Object", "Window", "Document"):
                await self._wire.add_match(f"type='signal',interface='{_EVENTS}{kind}'")
        await self.register(EVERYTHING)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """End one listener."""
        self._listeners.discard(subscription)

    @property
    def is_idle(self) -> bool:
        return not self._listeners

    def _on_message(self, message: "Message") -> None:
        if not self._listeners or not message.interface or not message.interface.startswith(_EVENTS):
            return
        change = _change(message)
        for listener in self._listeners:
            listener.put(change)


def _change(message: "Message") -> Change:
    family = (message.interface or "").removeprefix(_EVENTS).lower()
    body = message.body
    detail = str(body[0]) if body else ""
    member = _dashed(message.member or "")
    kind = f"{family}:{member}"
    number = body[1] if len(body) > 1 and isinstance(body[1], int) else 0
    child = _child(getattr(body[3], "value", None)) if len(body) > 3 and member == "children-changed" else None
    said = f"{kind}:{detail}" if detail else kind
    return Change(message.sender or "", message.path or "", said, number, time.monotonic(), child)


def _child(value: object) -> ElementId | None:
    """The child of a children-changed event, where the toolkit names it."""
    return element_id(value) if isinstance(value, list | tuple) and len(value) == 2 else None


def _dashed(member: str) -> str:
    """Normalize `StateChanged` and GTK 4's `state-changed` and `activate` to one spelling."""
    return "".join(
        f"-{char.lower()}" if char.isupper() and place else char.lower() for place, char in enumerate(member)
    )
