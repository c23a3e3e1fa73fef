"""The interface of a link, so that a remote computer does not depend on a transport."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from computer_linker.computer.manifest import FacetName, FacetState
from computer_linker.computer.remote.methods import Method, methods_of
from computer_linker.model.base import Model


class OfferedScope(Model):
    """A scope granted by that machine, and its capabilities. Its text fields are shown to clients."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    type: Literal["folder", "computer"]
    capabilities: Annotated[list[Annotated[str, Field(pattern=r"^[a-z_]{1,32}:[a-z_]{1,32}$")]], Field(max_length=64)]
    roots: list[str] = []


class Offer(Model):
    """A machine's message when a link opens: its identity, its manifest, and the scopes granted to us."""

    name: Annotated[str, Field(max_length=200)]
    system: Annotated[str, Field(max_length=64)]
    architecture: Annotated[str, Field(max_length=64)]
    facets: Annotated[dict[str, FacetState], Field(max_length=64)]
    traits: Annotated[list[str], Field(max_length=64)] = []
    """Properties of facets beyond their methods, such as `keyboard.takes_any_character`."""
    scopes: Annotated[list[OfferedScope], Field(max_length=256)] = []


@dataclass(frozen=True, slots=True)
class RemoteReply:
    """The result of a call: plain values, and the large binary data beside them."""

    value: Any
    blobs: list[bytes] = field(default_factory=list)


class Link(Protocol):
    """A connection to one machine."""

    @property
    def offer(self) -> Offer:
        """The offer from when the link was last opened; no round trip."""
        ...

    async def ask(self, scope: str, method: str, params: dict[str, Any], *, is_safe: bool) -> RemoteReply:
        """Call a method there. One with effects is never resent unless that machine deduplicates it by its key."""
        ...

    def stream(self, scope: str, method: str, params: dict[str, Any]) -> AsyncIterator[Any]:
        """The items that machine pushes, for as long as they are iterated."""
        ...


# A facet of another machine: each method packs its arguments, calls over the link, and unpacks the result.


class Forwarded:
    """A proxy for a facet of the machine at the other end."""

    def __init__(self, facet: FacetName, link: Link, scope: Callable[[], str]) -> None:
        self._methods = methods_of(facet)
        self._link = link
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        method = None if name.startswith("_") else self._methods.get(name)
        if method is None:
            raise AttributeError(name)
        made = self._streaming(method) if method.is_stream else self._calling(method)
        # Cached as an attribute, so that __getattr__ is not called again.
        self.__dict__[name] = made
        return made

    def _calling(self, method: Method) -> Callable[..., Any]:
        async def call(*given: Any, **named: Any) -> Any:
            return await ask(self._link, self._scope(), method, method.to_params(given, named))

        return call

    def _streaming(self, method: Method) -> Callable[..., AsyncIterator[Any]]:
        def stream(*given: Any, **named: Any) -> AsyncIterator[Any]:
            return subscribe(self._link, self._scope(), method, method.to_params(given, named))

        return stream


class RemoteKeyboard(Forwarded):
    """A keyboard, with its reported property."""

    @property
    def takes_any_character(self) -> bool:
        return "keyboard.takes_any_character" in self._link.offer.traits


async def ask(link: Link, scope: str, method: Method, params: dict[str, Any]) -> Any:
    """Call a method there and return its typed result."""
    answer = await link.ask(scope, method.name, params, is_safe=not method.is_act)
    return method.from_answer(answer.value, answer.blobs)


async def subscribe(link: Link, scope: str, method: Method, params: dict[str, Any]) -> AsyncGenerator[Any, None]:
    """The typed items that a method pushes, for as long as they are iterated."""
    items = link.stream(scope, method.name, params)
    try:
        async for item in items:
            yield method.from_answer(item, [])
    finally:
        await items.aclose()  # type: ignore[attr-defined]  # every link streams by a generator
