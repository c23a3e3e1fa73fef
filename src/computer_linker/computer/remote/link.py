"""The interface of a link, so that a remote computer does not depend on a transport."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from computer_linker.computer.manifest import FacetState
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
