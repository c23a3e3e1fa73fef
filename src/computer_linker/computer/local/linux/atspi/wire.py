"""The connection to the accessibility bus: single calls, pipelined calls, and signals, by dbus-fast."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from computer_linker.computer.facets.accessibility import ElementId
from computer_linker.computer.local.linux.atspi.names import PROPERTIES
from computer_linker.errors import ElementNotFound, LinkError, ProviderUnavailable, TimedOut
from computer_linker.extras import remedy

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

IN_FLIGHT = 64
_CALL_S = 5.0
_CONNECT_S = 5.0
_FULL_S = 0.002
_GONE = ("UnknownObject", "UnknownMethod", "ServiceUnknown", "NameHasNoOwner", "UnknownInterface")


class Request(NamedTuple):
    """One method call on an element or object."""

    at: ElementId
    interface: str
    member: str
    signature: str = ""
    body: tuple[Any, ...] = ()


class Fault(NamedTuple):
    """An application's error reply, or a timeout."""

    name: str
    text: str = ""

    @property
    def is_gone(self) -> bool:
        """True when the object or its application no longer exists."""
        return self.name.endswith(_GONE)


def get(at: ElementId, interface: str, name: str) -> Request:
    """Read one property. `GetAll` is never used: it crashes Qt 5 applications."""
    return Request(at, PROPERTIES, "Get", "ss", (interface, name))


class Wire:
    """A connection to the accessibility bus of this session."""

    def __init__(self, session: "MessageBus", bus: "MessageBus") -> None:
        self._session = session
        self._bus = bus
        self.calls = 0

    @classmethod
    async def open(cls, session_address: str) -> "Wire":
        """Connect, and enable accessibility for applications that start from now on."""
        try:
            from dbus_fast.aio import MessageBus
        except ImportError:
            raise ProviderUnavailable(
                f"Accessibility needs the package dbus-fast. {remedy('desktop')}", facet="accessibility"
            ) from None
        try:
            async with asyncio.timeout(_CONNECT_S):
                session = await MessageBus(bus_address=session_address).connect()
                address = await _switch_on(session)
                bus = await MessageBus(bus_address=address).connect()
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            raise ProviderUnavailable(
                "The accessibility bus of this desktop cannot be reached. Install and start at-spi2-core.",
                facet="accessibility",
            ) from error
        # dbus-fast's writer treats a full socket as a lost connection, and sends every message separately.
        writer: Any = bus._writer
        writer.sock = _PatientSocket(writer.sock)
        return cls(session, bus)

    @property
    def is_connected(self) -> bool:
        return bool(self._bus.connected)

    async def call(self, request: Request, timeout_s: float = _CALL_S) -> Any:
        """One call. Raises ElementNotFound when the object no longer exists, another LinkError for other errors."""
        answer = (await self.call_all([request], timeout_s))[0]
        if isinstance(answer, Fault):
            raise fault_error(answer, request)
        return answer

    async def call_all(self, requests: Sequence[Request], timeout_s: float = _CALL_S) -> list[Any]:
        """Many calls, a bounded number in flight; an error or timeout is a Fault in the result."""
        if not requests:
            return []
        batch = _Batch(self._bus, requests)
        self.calls += len(requests)
        return await batch.run(timeout_s)

    def send(self, request: Request) -> None:
        """Send a call without waiting for its reply."""
        self._bus._call(_message(request), lambda _reply, _error: None)

    async def add_match(self, rule: str) -> None:
        """Subscribe to the signals that match the rule."""
        await self.call(
            Request(
                ElementId("org.freedesktop.DBus", "/org/freedesktop/DBus"),
                "org.freedesktop.DBus",
                "AddMatch",
                "s",
                (rule,),
            )
        )

    async def pid_of(self, app: str) -> int | None:
        """The process id of a bus name's owner."""
        answer = (
            await self.call_all(
                [
                    Request(
                        ElementId("org.freedesktop.DBus", "/org/freedesktop/DBus"),
                        "org.freedesktop.DBus",
                        "GetConnectionUnixProcessID",
                        "s",
                        (app,),
                    )
                ]
            )
        )[0]
        return answer if isinstance(answer, int) else None

    def listen(self, heard: Callable[["Message"], None]) -> None:
        """Call `heard` with every message that arrives."""
        self._bus.add_message_handler(heard)

    async def aclose(self) -> None:
        """Close both connections."""
        for bus in (self._bus, self._session):
            if bus.connected:
                bus.disconnect()
                await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # the library left it untyped


def fault_error(fault: Fault, request: Request) -> LinkError:
    """The wire error for a Fault."""
    if fault.is_gone:
        return ElementNotFound("The element is gone.")
    if fault.name == "timeout":
        return silent(member=request.member)
    return ElementNotFound(f"The application refused {request.member}: {fault.text[:120] or fault.name}.")


def silent(**details: str) -> TimedOut:
    """The error for an application that does not answer."""
    return TimedOut("The application does not answer its accessibility calls; it may be frozen.", **details)


class _Batch:
    """Pipelined requests, answered in any order."""

    def __init__(self, bus: "MessageBus", requests: Sequence[Request]) -> None:
        self._bus = bus
        self._requests = requests
        self._answers: list[Any] = [Fault("timeout")] * len(requests)
        self._next = 0
        self._left = len(requests)
        self._done = asyncio.get_running_loop().create_future()

    async def run(self, timeout_s: float) -> list[Any]:
        for _ in range(min(IN_FLIGHT, self._left)):
            self._send()
        try:
            async with asyncio.timeout(timeout_s):
                await self._done
        except TimeoutError:
            self._next = len(self._requests)
        return self._answers

    def _send(self) -> None:
        place = self._next
        self._next += 1
        message = _message(self._requests[place])
        # The library's public call creates a task and a future per message, too slow for 5,000 of them; this is a callback.
        self._bus._call(message, lambda reply, error: self._answered(place, reply, error))

    def _answered(self, place: int, reply: "Message | None", error: Exception | None) -> None:
        if self._done.done():
            return
        self._answers[place] = _answer(reply, error)
        self._left -= 1
        if self._left == 0:
            self._done.set_result(None)
        elif self._next < len(self._requests):
            self._send()


def _message(request: Request) -> "Message":
    from dbus_fast import Message

    return Message(
        destination=request.at.app,
        path=request.at.path,
        interface=request.interface,
        member=request.member,
        signature=request.signature,
        body=list(request.body),
    )


def _answer(reply: "Message | None", error: Exception | None) -> Any:
    from dbus_fast import MessageType, Variant

    if reply is None:
        return Fault("disconnected", str(error or ""))
    if reply.message_type is MessageType.ERROR:
        return Fault(reply.error_name or "error", str(reply.body[0]) if reply.body else "")
    if len(reply.body) != 1:
        return list(reply.body)
    value = reply.body[0]
    return value.value if isinstance(value, Variant) else value


async def _switch_on(session: "MessageBus") -> str:
    from dbus_fast import Message, MessageType, Variant

    where: dict[str, Any] = {"destination": "org.a11y.Bus", "path": "/org/a11y/bus"}
    reply = await session.call(Message(**where, interface="org.a11y.Bus", member="GetAddress"))
    if reply is None or reply.message_type is MessageType.ERROR:
        raise ProviderUnavailable(
            "This desktop has no accessibility bus. Install at-spi2-core and log in again.", facet="accessibility"
        )
    body = ["org.a11y.Status", "IsEnabled", Variant("b", True)]
    await session.call(Message(**where, interface=PROPERTIES, member="Set", signature="ssv", body=body))
    return str(reply.body[0])


class _PatientSocket:
    """A socket wrapper that buffers messages and sends them together, also when the socket is full for a moment.

    Sent one by one, each message wakes the bus and the application, which takes longer than handling it.
    """

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._waiting = bytearray()
        self._loop = asyncio.get_running_loop()

    def send(self, data: Any) -> int:
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting += data
        return len(data)

    def sendmsg(self, *parts: Any) -> int:
        """Unused: only for messages with descriptors, of which there are none here."""
        self._flush()
        return int(self._sock.sendmsg(*parts))

    def _flush(self) -> None:
        try:
            del self._waiting[: self._sock.send(self._waiting)]
        except BlockingIOError:
            pass
        except OSError:
            # The bus is gone, which the reader reports.
            self._waiting.clear()
        if self._waiting:
            self._loop.call_later(_FULL_S, self._flush)
