"""The channel interface of the client, and its self-contained requests (MCP 2026-07-28)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from computer_linker import __version__

VERSION = "2026-07-28"
Report = Callable[[str, float, float | None], None]
"""Called with progress: a sentence, the amount done, and the total."""
Decision = Literal["once", "no"]
"""`once` counts only where the owner allowed this client: computer-linker approvals allow-client computer-linker-python."""


class ClientFailed(Exception):
    """The service could not be reached, or its reply is not valid."""


class Disconnected(ClientFailed):
    """The other side closed the connection."""


class NotAuthorized(ClientFailed):
    """The service requires a credential, or another one."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a person before an act: the exact request, as text."""

    text: str


Asking = Callable[[Question], Awaitable[Decision]]
"""Shows the question to a person and returns the decision."""


class Channel(Protocol):
    """Sends one request and returns its result."""

    @property
    def next_number(self) -> int: ...

    async def request(self, method: str, params: dict[str, Any], report: Report | None) -> dict[str, Any]: ...


def with_meta(params: dict[str, Any], *, can_ask: bool, progress_token: int | None) -> dict[str, Any]:
    """The parameters with the client metadata that 2026-07-28 requires in each request."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "computer-linker-python", "version": __version__},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}} if can_ask else {},
    }
    if progress_token is not None:
        meta["progressToken"] = progress_token
    return {**params, "_meta": meta}


def report_progress(report: Report | None, message: dict[str, Any]) -> None:
    """Pass on a progress notification."""
    if report is not None and message.get("method") == "notifications/progress":
        params = message["params"]
        report(str(params.get("message", "")), float(params["progress"]), params.get("total"))


def result_of(message: dict[str, Any], method: str) -> dict[str, Any]:
    """The result of an answer. Raises ClientFailed for a protocol error."""
    if "error" in message:
        raise ClientFailed(f"{method} was answered with an error: {message['error'].get('message')}")
    result: dict[str, Any] = message["result"]
    return result
