"""A question to the person as a notice with buttons, over the session bus."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

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
