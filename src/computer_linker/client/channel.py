"""The channel interface of the client, and its self-contained requests (MCP 2026-07-28)."""

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, TypeVar

from computer_linker import __version__
from computer_linker.errors import LinkError
from computer_linker.model.base import Model
from computer_linker.model.effect import Known

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


# Converts reply envelopes to values, or to the exception class of their error code.

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Image:
    """An image attached to the envelope."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one successful operation."""

    operation_id: str
    scope: str
    op: str
    started_at: str
    duration_ms: float
    data: dict[str, Any]
    warnings: list[str] = field(default_factory=list)
    effect: Known | None = None
    images: list[Image] = field(default_factory=list)

    def into(self, kind: type[M]) -> M:
        """The data as the model the operation itself returns, such as `FileText` of file.read."""
        return kind.from_wire(self.data)


class UnknownFailure(LinkError):
    """A failure with a code unknown to this version."""

    code = "execution_failed"


def text_of(result: dict[str, Any]) -> dict[str, Any]:
    """The JSON object in a tool result's text."""
    for block in result.get("content", []):
        if block.get("type") == "text":
            value = json.loads(block["text"])
            if isinstance(value, dict):
                return value
    raise ClientFailed("the answer carries no JSON text")


def answer_of(result: dict[str, Any]) -> Answer:
    """The answer of computer_operation. Raises the LinkError of its code when the operation was refused or failed."""
    envelope = text_of(result)
    raise_failure(envelope)
    images = [
        Image(block["mimeType"], base64.b64decode(block["data"]))
        for block in result["content"]
        if block.get("type") == "image"
    ]
    return Answer(
        operation_id=envelope["operationId"],
        scope=envelope["scope"],
        op=envelope["op"],
        started_at=envelope["startedAt"],
        duration_ms=envelope["durationMs"],
        data=envelope["data"],
        warnings=envelope["warnings"],
        effect=envelope.get("effect"),
        images=images,
    )


def raise_failure(envelope: dict[str, Any]) -> None:
    """Raise the error of a failed envelope; among the details are the operation's id and, of a batch, its `data`."""
    if envelope.get("ok", True):
        return
    error = envelope["error"]
    details = {**error["details"], "operationId": envelope.get("operationId")}
    if "data" in envelope:
        details["data"] = envelope["data"]
    raise _classes().get(error["code"], UnknownFailure)(error["message"], **details)


@cache
def _classes() -> dict[str, type[LinkError]]:
    found: dict[str, type[LinkError]] = {}
    for kind in LinkError.__subclasses__():
        if kind is not UnknownFailure:
            found.setdefault(kind.code, kind)
    return found
