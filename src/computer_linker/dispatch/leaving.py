"""The last step of every answer: no stored secret leaves in it, in any usual encoding."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from computer_linker.model.envelope import Reply
from computer_linker.registry.context import Progress
from computer_linker.services import Services
from computer_linker.vault.mask import Mask
from computer_linker.vault.vault import Vault

_TEXT = ("text/", "application/json")


def masked(services: Services, reply: Reply) -> Reply:
    """The reply with each secret replaced by its name. Without stored secrets, and without one in it, it is the same object."""
    mask = services.use(Vault).mask
    if not mask:
        return reply
    attachments = [
        replace(each, data=mask.masked(each.data)) if each.mime.startswith(_TEXT) else each
        for each in reply.attachments
    ]
    # One search over the whole answer: nearly every one has none.
    has_one = mask.may_be_in(to_json(reply.envelope, by_alias=True, fallback=str, inf_nan_mode="constants"))
    return Reply(_without(reply.envelope, mask) if has_one else reply.envelope, attachments)


def masked_report(services: Services, report: Progress | None) -> Progress | None:
    """A caller's progress, of which each message is masked as the answer is."""
    if report is None:
        return None

    def reporting(message: str, current: float | None, total: float | None) -> None:
        report(services.use(Vault).mask.masked_text(message), current, total)

    return reporting


def masked_line(services: Services, line: str | Sequence[str]) -> str | list[str]:
    """A command line for the history, before it is cut."""
    return masked_text(services, line) if isinstance(line, str) else [masked_text(services, word) for word in line]


def masked_text(services: Services, text: str) -> str:
    """A text for the history, before it is cut."""
    return services.use(Vault).mask.masked_text(text)


def _without(value: Any, mask: Mask) -> Any:
    """The same value, rebuilt only where a text in it changes."""
    if isinstance(value, str):
        return mask.masked_text(value)
    if isinstance(value, bytes):
        return mask.masked(value)
    if isinstance(value, dict):
        return {_without(name, mask): _without(part, mask) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return (
            type(value)(_without(part, mask) for part in value) if type(value) in (list, tuple) else _plain(value, mask)
        )
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _without(getattr(value, field.name), mask) for field in fields(value)})
    if isinstance(value, BaseModel):
        made = {name: _without(getattr(value, name), mask) for name in type(value).model_fields}
        return value.model_copy(update=made)
    return value


def _plain(value: Any, mask: Mask) -> list[Any]:
    """A list of a special kind as a plain one."""
    return [_without(part, mask) for part in value]
