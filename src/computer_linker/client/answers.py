"""Converts reply envelopes to values, or to the exception class of their error code."""

import base64
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from computer_linker.client.channel import ClientFailed
from computer_linker.errors import LinkError
from computer_linker.model.base import Model
from computer_linker.model.effect import Known

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
