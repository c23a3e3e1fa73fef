"""Notifies connected clients that a list they may have kept is outdated: the resources, when their scopes changed.

The tools and prompts are constant while a service runs; only a list of tools that the stdio shim gave ahead of a new version
can be outdated, which `wire.py` announces.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from pydantic_core import to_json

from computer_linker.config.schema import Config
from computer_linker.errors import ConfigInvalid
from computer_linker.model.principal import Principal
from computer_linker.policy.engine import sees_scope
from computer_linker.services import Services

LISTEN = "subscriptions/listen"
_EVERY_S = 0.5
_META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_OFFERED = ("toolsListChanged", "resourcesListChanged")
Seen = tuple[tuple[str, frozenset[str]], ...]


class ListChanges:
    """Compares the config with what each client was shown, a few times a second and only while clients listen."""

    def __init__(self, config: Callable[[], Config]) -> None:
        self._config = config
        self._compared: Config | None = None
        self._listeners: dict[object, _Listener] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.has_clients = asyncio.Event()
        """Set from the first client on."""
        self._are_tools_known = self._are_lists_current = False
        self._waiting: list[Callable[[], None]] = []

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.current_config)

    @contextmanager
    def watched(self, who: Callable[[], Principal], notify: Callable[[], None]) -> Iterator[None]:
        """Call `notify` each time the scopes that this client sees, or their capabilities, have changed."""
        key = object()
        self.has_clients.set()
        self._listeners[key] = _Listener(who, notify, self._seen(who()))
        self._look_later()
        try:
            yield
        finally:
            del self._listeners[key]
            if not self._listeners and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def when_tools_are_known(self, compare: Callable[[], None]) -> None:
        """Call it once the tools can be listed without a wait: the list names operations, which are imported after the start."""
        if self._are_lists_current:
            return
        if self._are_tools_known:
            compare()
        else:
            self._waiting.append(compare)

    def lists_are_current(self) -> None:
        """The lists that the stdio shim gives are those of this service: nothing has to be compared."""
        self._are_lists_current = True
        self._waiting.clear()

    def tools_are_known(self) -> None:
        """Run what waits for the list of tools."""
        self._are_tools_known = True
        while self._waiting:
            self._waiting.pop()()

    def _seen(self, who: Principal) -> Seen | None:
        try:
            config = self._config()
        except ConfigInvalid:
            return None
        return tuple((scope.id, frozenset(scope.capabilities)) for scope in config.scopes if sees_scope(who, scope.id))

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._look)

    def _look(self) -> None:
        self._timer = None
        self._look_later()
        try:
            config = self._config()
        except ConfigInvalid:
            # Every call is refused meanwhile.
            return
        if config is self._compared:
            return
        self._compared = config
        for listener in list(self._listeners.values()):
            seen = self._seen(listener.who())
            if seen != listener.seen:
                listener.seen = seen
                listener.notify()


class _Listener:
    def __init__(self, who: Callable[[], Principal], notify: Callable[[], None], seen: Seen | None) -> None:
        self.who, self.notify, self.seen = who, notify, seen


class Subscriptions:
    """How one line connection is notified: unasked in the handshake era, by its subscriptions in the 2026-07-28 era."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._held: dict[str | int, dict[str, bool]] = {}
        self._tools_outdated = False

    @contextmanager
    def held(self, subscription: str | int, honored: dict[str, bool]) -> Iterator[None]:
        """Serve a subscription for as long as the body runs."""
        self._held[subscription] = honored
        self._send(acknowledged(honored, subscription))
        if self._tools_outdated:
            self._to("tools", subscription, honored)
        try:
            yield
        finally:
            del self._held[subscription]

    def tools_outdated(self, *, is_modern: bool) -> None:
        """The list of tools that this client has is not the current one; a 2026-07-28 client learns it when it subscribes."""
        self._tools_outdated = is_modern
        if not is_modern:
            self._send(changed("tools"))

    def resources_changed(self, *, is_modern: bool) -> None:
        if not is_modern:
            self._send(changed("resources"))
        for subscription, honored in self._held.items():
            self._to("resources", subscription, honored)

    def _to(self, kind: str, subscription: str | int, honored: dict[str, bool]) -> None:
        if f"{kind}ListChanged" in honored:
            self._send(changed(kind, subscription))


def changed(kind: str, subscription: str | int | None = None) -> bytes:
    """The notification that a list changed, of a subscription in the 2026-07-28 era."""
    params = {} if subscription is None else {"params": {"_meta": {_META_SUBSCRIPTION: subscription}}}
    return to_json({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed", **params})


def wanted(message: dict[str, Any]) -> dict[str, bool] | None:
    """What a listening client asks for, as far as it is offered; None for a request that is not well formed."""
    params = message.get("params")
    asked = params.get("notifications") if type(params) is dict else None
    if type(asked) is not dict:
        return None
    return {name: True for name in _OFFERED if asked.get(name) is True}


def acknowledged(honored: dict[str, bool], subscription: str | int) -> bytes:
    """The first message of a subscription."""
    params = {"notifications": honored, "_meta": {_META_SUBSCRIPTION: subscription}}
    return to_json({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
