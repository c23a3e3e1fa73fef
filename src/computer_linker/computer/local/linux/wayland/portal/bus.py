"""A session bus client for the portals: calls with timeouts, signals, and portal requests with later responses."""

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio

from computer_linker.errors import ProviderUnavailable, TimedOut

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

PORTAL = "org.freedesktop.portal.Desktop"
PORTAL_PATH = "/org/freedesktop/portal/desktop"
PROPERTIES = "org.freedesktop.DBus.Properties"
DBUS = "org.freedesktop.DBus"
DBUS_PATH = "/org/freedesktop/DBus"
_CALL_S = 5.0
_CONNECT_S = 5.0


class BusRefusal(ProviderUnavailable):
    """An error reply from the bus. `name` is the D-Bus error name."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"The desktop refused: {text[:160] or name}")
        self.name = name


class Answer:
    """The response to one portal request, which may arrive only once a person has decided."""

    def __init__(self) -> None:
        self._given = anyio.Event()
        self.code = -1
        self.results: dict[str, Any] = {}

    def give(self, code: int, results: Mapping[str, Any]) -> None:
        """Store the portal's response, with variants unwrapped."""
        self.code, self.results = code, {name: value.value for name, value in results.items()}
        self._given.set()

    async def within(self, seconds: float) -> bool:
        """True once the response has arrived, False on timeout."""
        with anyio.move_on_after(seconds):
            await self._given.wait()
        return self._given.is_set()


class SessionBus:
    """One connection to a session bus."""

    def __init__(self, bus: "MessageBus") -> None:
        self._bus = bus
        self._heard: dict[tuple[str, str], Callable[[list[Any]], None]] = {}
        bus.add_message_handler(self._take)

    @classmethod
    async def open(cls, address: str) -> "SessionBus":
        """Connect.

        Raises:
            ProviderUnavailable: nothing answers at the address.
        """
        from dbus_fast.aio import MessageBus

        try:
            with anyio.fail_after(_CONNECT_S):
                return cls(await MessageBus(bus_address=address).connect())
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            raise ProviderUnavailable("The session bus does not answer.") from error

    @property
    def is_connected(self) -> bool:
        return bool(self._bus.connected)

    async def call(self, name: str, path: str, member: str, signature: str = "", *values: Any) -> Any:
        """Call `interface.Method` of a name; returns its single result, unwrapped.

        Raises:
            BusRefusal: the reply is an error.
            TimedOut: there is no reply.
        """
        from dbus_fast import Message, MessageType, Variant

        interface, method = member.rsplit(".", 1)
        message = Message(name, path, interface, method, signature=signature, body=list(values))
        try:
            with anyio.fail_after(_CALL_S):
                reply = await self._bus.call(message)
        except TimeoutError as error:
            raise TimedOut(f"The desktop does not answer {method}.") from error
        except (OSError, EOFError) as error:
            raise ProviderUnavailable("The session bus closed the connection.") from error
        if reply is None:
            raise ProviderUnavailable("The session bus closed the connection.")
        if reply.message_type is MessageType.ERROR:
            raise BusRefusal(reply.error_name or "", str(reply.body[0]) if reply.body else "")
        value = reply.body[0] if reply.body else None
        return value.value if isinstance(value, Variant) else value

    async def get(self, name: str, path: str, prop: str) -> Any:
        """One property, named `interface.Property`."""
        return await self.call(name, path, f"{PROPERTIES}.Get", "ss", *prop.rsplit(".", 1))

    async def has(self, name: str) -> bool:
        """True when the name has an owner now; does not activate a service."""
        return bool(await self.call(DBUS, DBUS_PATH, f"{DBUS}.NameHasOwner", "s", name))

    async def on_signal(self, path: str, signal: str, heard: Callable[[list[Any]], None]) -> None:
        """Call `heard` with the arguments of the signal `interface.Signal` of an object."""
        interface, member = signal.rsplit(".", 1)
        self._heard[path, member] = heard
        rule = f"type='signal',interface='{interface}',path='{path}',member='{member}'"
        await self.call(DBUS, DBUS_PATH, f"{DBUS}.AddMatch", "s", rule)

    async def ask(
        self, member: str, signature: str, values: tuple[Any, ...], options: Mapping[str, Any], *, given: Answer
    ) -> None:
        """Send a portal request; `given` receives the response, after the person's decision where one is needed."""
        from dbus_fast import Variant

        token = f"linker_{secrets.token_hex(6)}"
        sender = (self._bus.unique_name or "").removeprefix(":").replace(".", "_")
        await self.on_signal(
            f"{PORTAL_PATH}/request/{sender}/{token}",
            "org.freedesktop.portal.Request.Response",
            lambda said: given.give(said[0], said[1]),
        )
        sent = {"handle_token": Variant("s", token), **options}
        await self.call(PORTAL, PORTAL_PATH, member, f"{signature}a{{sv}}", *values, sent)

    async def aclose(self) -> None:
        """Disconnect. Sessions opened over this connection end with it."""
        if self._bus.connected:
            self._bus.disconnect()
            with anyio.move_on_after(_CALL_S):
                await self._bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # the library left it untyped

    def _take(self, message: "Message") -> None:
        from dbus_fast import MessageType

        if message.message_type is MessageType.SIGNAL:
            heard = self._heard.get((message.path or "", message.member or ""))
            if heard is not None:
                heard(list(message.body))
