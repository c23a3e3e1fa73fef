"""What a remote computer asks of the link it lives on, so that it knows no transport."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from computer_linker.computer.manifest import FacetState
from computer_linker.model.base import Model


class OfferedScope(Model):
    """A scope of that machine which we were given, and what we may do in it. What a machine says here is shown to clients."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    type: Literal["folder", "computer"]
    capabilities: Annotated[list[Annotated[str, Field(pattern=r"^[a-z_]{1,32}:[a-z_]{1,32}$")]], Field(max_length=64)]
    roots: list[str] = []


class Offer(Model):
    """What a machine says of itself when a link opens: what it is, what it can do now, and what of that we were given."""

    name: Annotated[str, Field(max_length=200)]
    system: Annotated[str, Field(max_length=64)]
    architecture: Annotated[str, Field(max_length=64)]
    facets: Annotated[dict[str, FacetState], Field(max_length=64)]
    traits: Annotated[list[str], Field(max_length=64)] = []
    """What facets say of themselves beyond their methods, such as `keyboard.takes_any_character`."""
    scopes: Annotated[list[OfferedScope], Field(max_length=256)] = []


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave: plain values, and the large bytes that came beside them."""

    value: Any
    blobs: list[bytes] = field(default_factory=list)


class Link(Protocol):
    """A way to one machine."""

    @property
    def offer(self) -> Offer:
        """What the machine said when the link was last opened; no round trip."""
        ...

    async def ask(self, scope: str, method: str, params: dict[str, Any], *, is_safe: bool) -> Answer:
        """Call a method there. One that is not safe is never sent a second time unless that machine knows it by its key."""
        ...

    def stream(self, scope: str, method: str, params: dict[str, Any]) -> AsyncIterator[Any]:
        """What that machine pushes, for as long as it is iterated."""
        ...
