"""The Python SDK: a computer's scopes and operations over HTTP, the private socket or stdio, async and blocking.

    async with AsyncClient.over_socket() as linker:
        answer = await linker.scope("app").call("file.read", "notes.txt")

Names are loaded on first use: the command line shares this package and must start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from computer_linker.client.asynchronous import AsyncClient, AsyncScope
    from computer_linker.client.blocking import Client, Scope
    from computer_linker.client.channel import Answer, ClientFailed, Image, NotAuthorized, Question

_PLACES = {
    "Answer": "channel",
    "Image": "channel",
    "AsyncClient": "asynchronous",
    "AsyncScope": "asynchronous",
    "Client": "blocking",
    "Scope": "blocking",
    "ClientFailed": "channel",
    "NotAuthorized": "channel",
    "Question": "channel",
}

__all__ = [
    "Answer", "AsyncClient", "AsyncScope", "Client", "ClientFailed", "Image", "NotAuthorized", "Question", "Scope",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
