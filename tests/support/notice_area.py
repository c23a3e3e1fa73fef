"""A desktop's notice area on a real session bus: it shows notices to the test, and presses their buttons for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus

_NAME, _PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"


@dataclass
class Notice:
    number: int
    summary: str
    body: str
    actions: list[str]


class NoticeArea:
    """Owns the well-known name and answers its calls."""

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus
        self._send, self._receive = anyio.create_memory_object_stream[Notice](16)
        self._count = 0
        self.closed: list[int] = []

    @staticmethod
    @asynccontextmanager
    async def open(address: str) -> AsyncIterator["NoticeArea"]:
        bus = await MessageBus(bus_address=address).connect()
        area = NoticeArea(bus)
        bus.add_message_handler(area._called)
        await bus.request_name(_NAME)
        try:
            yield area
        finally:
            bus.disconnect()
            area._send.close()
            area._receive.close()

    @staticmethod
    async def forge(address: str, number: int) -> None:
        """Send the signal of a pressed button from a connection that is not the notice area."""
        bus = await MessageBus(bus_address=address).connect()
        await bus.send(Message.new_signal(_PATH, _NAME, "ActionInvoked", "us", [number, "allow"]))
        # A round trip: the signal has been passed on by then.
        await bus.introspect("org.freedesktop.DBus", "/org/freedesktop/DBus")
        bus.disconnect()

    @property
    def shown(self) -> int:
        """How many notices there were."""
        return self._count

    async def next(self) -> Notice:
        with anyio.fail_after(20):
            return await self._receive.receive()

    def press(self, number: int, button: str | None) -> None:
        """A button, or the notice's own closing cross."""
        if button is not None:
            self._bus.send(Message.new_signal(_PATH, _NAME, "ActionInvoked", "us", [number, button]))
        self._bus.send(Message.new_signal(_PATH, _NAME, "NotificationClosed", "uu", [number, 2]))

    def _called(self, message: Any) -> Message | bool | None:
        if message.message_type is not MessageType.METHOD_CALL or message.interface != _NAME:
            return None
        if message.member == "GetCapabilities":
            return Message.new_method_return(message, "as", [["body", "body-markup", "actions"]])
        if message.member == "Notify":
            self._count += 1
            self._send.send_nowait(Notice(self._count, message.body[3], message.body[4], message.body[5]))
            return Message.new_method_return(message, "u", [self._count])
        if message.member == "CloseNotification":
            self.closed.append(message.body[0])
            return Message.new_method_return(message, "", [])
        return None
