"""Notices on the session bus, observed by monitoring it; the desktop's own notification service stays in use."""

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from computer_linker.computer.facets.notifications import Notification, Question
from computer_linker.errors import ProviderUnavailable
from computer_linker.model.geometry import safe_title

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

_KEPT = 100
_BODY = 2000
_RULE = "type='method_call',interface='org.freedesktop.Notifications',member='Notify'"


class BusNotifications:
    """Notifications of a session bus. Monitoring starts on first use."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("DBUS_SESSION_BUS_ADDRESS")
        self._bus: MessageBus | None = None
        self._kept: deque[Notification] = deque(maxlen=_KEPT)
        self._listeners: list[MemoryObjectSendStream[Notification]] = []
        self._own: set[str] = set()
        """The bus names of this service's own questions: what one client asks the owner is not for others to read."""

    async def recent(self) -> list[Notification]:
        """The notices since monitoring started."""
        await self._watch()
        return list(self._kept)

    async def subscribe(self) -> AsyncIterator[Notification]:
        """New notices as they are sent."""
        await self._watch()
        send, receive = anyio.create_memory_object_stream[Notification](_KEPT)
        self._listeners.append(send)
        try:
            async for notice in receive:
                yield notice
        finally:
            self._listeners.remove(send)
            send.close()
            receive.close()

    @asynccontextmanager
    async def question(self) -> AsyncIterator[Question | None]:
        """A notice with buttons, on a connection of its own."""

        notice = NoticeQuestion(self._address or "")
        try:
            is_open = bool(self._address) and await notice.open()
            self._own.add(notice.name)
            yield notice if is_open else None
        finally:
            await notice.close()

    async def aclose(self) -> None:
        """Stop monitoring."""
        if self._bus is not None:
            self._bus.disconnect()
            self._bus = None

    async def _watch(self) -> None:
        if self._bus is not None and self._bus.connected:
            return
        from dbus_fast import Message, MessageType
        from dbus_fast.aio import MessageBus

        if not self._address:
            raise ProviderUnavailable("There is no session bus, so no notices can be seen.")
        bus = await MessageBus(bus_address=self._address).connect()
        bus.add_message_handler(self._seen)
        reply = await bus.call(
            Message(
                destination="org.freedesktop.DBus",
                path="/org/freedesktop/DBus",
                interface="org.freedesktop.DBus.Monitoring",
                member="BecomeMonitor",
                signature="asu",
                body=[[_RULE], 0],
            )
        )
        if reply is None or reply.message_type != MessageType.METHOD_RETURN:
            bus.disconnect()
            raise ProviderUnavailable("The session bus does not let notices be watched.")
        self._bus = bus

    def _seen(self, message: Any) -> bool:
        if message.member != "Notify" or message.signature != "susssasa{sv}i":
            return False
        if message.sender in self._own:
            # Handled all the same: the bus disconnects a monitor that sends the reply which an unhandled call gets.
            return True
        app, _, _, summary, body = message.body[:5]
        notice = Notification(
            app=safe_title(app),
            summary=safe_title(summary),
            body=body[:_BODY],
            received_at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        )
        self._kept.append(notice)
        for listener in self._listeners:
            try:
                listener.send_nowait(notice)
            except anyio.WouldBlock:
                continue
        return True


# A question to the person as a notice with buttons, over the session bus.

_NAME = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"
_CALL_S = 2.0


class NoticeQuestion:
    """One connection to the notification service. Only signals of its owner count: any client may send on the bus."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._bus: MessageBus | None = None
        self._owner = ""
        self._shown: int | None = None
        self._early: list[tuple[int, str | None]] = []
        self._chosen: str | None = None
        self._ended = anyio.Event()

    @property
    def name(self) -> str:
        """The unique name of its connection; the bus never gives it to another."""
        return "" if self._bus is None else self._bus.unique_name or ""

    async def open(self) -> bool:
        """Connect; True when the notification service supports buttons."""
        from dbus_fast.aio import MessageBus

        with anyio.move_on_after(_CALL_S):
            try:
                self._bus = await MessageBus(bus_address=self._address).connect()
            except OSError:
                return False
            offered = await self._call(_NAME, _PATH, _NAME, "GetCapabilities")
            owner = await self._call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                     "GetNameOwner", "s", [_NAME])  # fmt: skip
            self._owner = str(owner or "")
            return bool(owner) and "actions" in (offered or [])
        return False

    async def ask(self, summary: str, body: str, actions: Sequence[tuple[str, str]]) -> str | None:
        """The key of the button that was pressed; None when the notice was closed without one."""
        assert self._bus is not None, "open() comes first"
        self._bus.add_message_handler(self._signal)
        rule = f"type='signal',sender='{_NAME}',interface='{_NAME}'"
        await self._call(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch", "s", [rule]
        )
        flat = [word for pair in actions for word in pair]
        # Markup would let a request forge parts of the notice, so everything is escaped. It stays until it is answered.
        arguments = ["Computer Linker", 0, "", summary, escape(body, quote=False), flat, _critical(), 0]
        shown = await self._call(_NAME, _PATH, _NAME, "Notify", "susssasa{sv}i", arguments)
        if type(shown) is not int:
            return None
        self._shown = shown
        for number, choice in self._early:
            self._end(number, choice)
        await self._ended.wait()
        return self._chosen

    async def close(self) -> None:
        """Close the notice and disconnect."""
        if self._bus is None:
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(_CALL_S):
            if self._shown is not None and not self._ended.is_set():
                await self._call(_NAME, _PATH, _NAME, "CloseNotification", "u", [self._shown])
        self._bus.disconnect()

    async def _call(
        self, destination: str, path: str, interface: str, member: str, signature: str = "", body: Sequence[Any] = ()
    ) -> Any:
        """The first value of the reply; None for an error."""
        from dbus_fast import Message, MessageType

        assert self._bus is not None
        message = Message(
            destination=destination, path=path, interface=interface, member=member, signature=signature, body=list(body)
        )
        reply = await self._bus.call(message)
        if reply is None or reply.message_type != MessageType.METHOD_RETURN:
            return None
        return reply.body[0] if reply.body else None

    def _signal(self, message: Any) -> bool:
        if message.interface == _NAME and message.sender == self._owner:
            if message.member == "ActionInvoked" and message.signature == "us":
                self._end(*message.body)
            elif message.member == "NotificationClosed" and message.signature == "uu":
                self._end(message.body[0], None)
        return False

    def _end(self, number: int, choice: str | None) -> None:
        if self._shown is None:
            # The signal can arrive before the reply with the notice's id.
            self._early.append((number, choice))
        elif number == self._shown and not self._ended.is_set():
            self._chosen = choice
            self._ended.set()


def _critical() -> dict[str, Any]:
    from dbus_fast import Variant

    return {"urgency": Variant("y", 2)}
