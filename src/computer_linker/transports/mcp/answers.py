"""Renders a tool's answer for the client that asked, within what that client hands to its model."""

from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo

from computer_linker.model.base import ForModels
from computer_linker.model.envelope import CALL_FIELDS, Reply
from computer_linker.model.principal import Principal
from computer_linker.registry.schema import fields_in
from computer_linker.transports.mcp.content import META_ENVELOPE, envelope_meta, fit, model_json, result_json
from computer_linker.transports.mcp.profiles import Profile

if TYPE_CHECKING:
    from computer_linker.registry.operation import Operation
    from computer_linker.transports.mcp.fast_path import Negotiated, ToolCall
    from computer_linker.transports.mcp.tools import Tools

_PAGE = "maxBytes"
_GOES_ON = frozenset({"nextLine", "nextByte", "cursor"})
_LINES = "lineCount"
_OTHER_PARTS = frozenset({_LINES, "tailLines", "startByte", "encoding"})
"""What asks for another part of a file than its lines from one on."""
_LINES_BESIDE_A_PAGE = 10
_BESIDE_A_PAGE = 400
"""Bytes of an answer that are not the page itself."""


def rendered(
    reply: Reply, tools: "Tools", call: "ToolCall", who: Principal, negotiated: "Negotiated"
) -> tuple[bytes, dict[str, Any]]:
    """The members of the result, and its `_meta`."""
    cut = _cut(negotiated.profile, reply)
    if negotiated.render == "json":
        members = result_json(reply)
        # A program reads all of it; a known client that chose JSON for its model will cut, and its host can see that here.
        will_cut = cut is not None and len(members) > cut
        return members, {META_ENVELOPE: {**envelope_meta(reply.envelope), "truncated": True}} if will_cut else {}
    text = tools.text(call.name, reply.envelope, call.arguments.get("target"), cut).encode("utf-8", "replace")
    meta = {META_ENVELOPE: envelope_meta(reply.envelope)}
    most_lines = negotiated.profile.most_lines
    if cut is not None and (len(text) > cut or (most_lines is not None and text.count(b"\n") >= most_lines)):
        whole, text = text, fit(text, cut, _reading_on(reply.envelope), most_lines)
        tools.keep(reply.envelope, who, whole)
        meta[META_ENVELOPE]["truncated"] = True
    return model_json(reply, text), meta


def paged(tools: "Tools", call: "ToolCall", negotiated: "Negotiated") -> dict[str, Any]:
    """The arguments, with the defaults for a model, and a page that fits the client where one can be asked for and was not."""
    arguments = call.arguments
    options = arguments.get("options")
    if not (options is None or type(options) is dict) or not arguments.keys() <= CALL_FIELDS:
        return arguments
    op = tools.operation_of(call.name, arguments)
    known = fields_in(op.hints["options"]) if op is not None and "options" in op.hints else {}
    if op is None or not known.keys() >= (options or {}).keys():
        # It is refused or respelled: its own fields alone are shown in the correction.
        return arguments
    made = {**_for_models(known, negotiated), **(options or {})}
    if negotiated.profile.cut is not None and _PAGE not in made and _goes_on(op):
        made |= _page(known, options or {}, negotiated.profile, negotiated.profile.cut)
    return {**arguments, "options": made} if made else arguments


def _for_models(known: dict[str, FieldInfo], negotiated: "Negotiated") -> dict[str, Any]:
    if negotiated.render != "model":
        return {}
    return {
        name: mark.default for name, field in known.items() for mark in field.metadata if isinstance(mark, ForModels)
    }


def _page(known: dict[str, FieldInfo], options: dict[str, Any], profile: Profile, cut: int) -> dict[str, Any]:
    page = {_PAGE: min(known[_PAGE].default, cut - _BESIDE_A_PAGE)}
    if profile.most_lines is not None and _LINES in known and _OTHER_PARTS.isdisjoint(options):
        page[_LINES] = profile.most_lines - _LINES_BESIDE_A_PAGE
    return page


def _goes_on(op: "Operation") -> bool:
    """True for an operation that answers in pages of bytes and names where the next one begins."""
    has_page = "options" in op.hints and _PAGE in fields_in(op.hints["options"])
    return has_page and not _GOES_ON.isdisjoint(fields_in(op.hints["return"]))


def _cut(profile: Profile, reply: Reply) -> int | None:
    failed = reply.envelope.get("ok") is False
    return profile.error_cut if failed and profile.error_cut is not None else profile.cut


def _reading_on(envelope: dict[str, Any]) -> Any:
    """How to read what is left out: by result.read, or by asking for less where the answer is of another computer."""
    operation_id, scope = envelope.get("operationId"), str(envelope.get("scope", ""))
    if operation_id is None or "/" in scope:
        return lambda at: "Ask for less at a time."
    return lambda at: f'Read on: result.read {{"target": "{operation_id}", "options": {{"startByte": {at}}}}}'
