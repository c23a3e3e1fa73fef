"""A facet of another machine: each method packs its arguments, calls over the link, and unpacks the result."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from computer_linker.computer.manifest import FacetName
from computer_linker.computer.remote.link import Link
from computer_linker.computer.remote.methods import Method, methods_of


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
