"""Notices on the session bus, observed by monitoring it; the desktop's own notification service stays in use."""

from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from computer_linker.computer.facets.notifications import Notification, Question
from computer_linker.errors import ProviderUnavailable
from computer_linker.model.titles import safe_title

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
        from computer_linker.computer.local.linux.notice_question import NoticeQuestion

        notice = NoticeQuestion(self._address or "")
        try:
            yield notice if self._address and await notice.open() else None
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
