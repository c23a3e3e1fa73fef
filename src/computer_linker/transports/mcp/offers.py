"""Answers the protocol's methods for resources, prompts and completion, for both eras."""

from typing import Any

from computer_linker.errors import InvalidRequest, LinkError
from computer_linker.model.principal import Principal
from computer_linker.transports.mcp import prompts
from computer_linker.transports.mcp.resources import TEMPLATES, Resources, code_of
from computer_linker.transports.mcp.tools import Tools

CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True},
    "prompts": {"listChanged": False},
    "completions": {},
}
METHODS = frozenset(
    "resources/list resources/templates/list resources/read prompts/list prompts/get completion/complete".split()
)
CONSTANT = frozenset({"resources/templates/list", "prompts/list"})
"""Lists that do not change while the service runs."""
HOUR_MS = 3_600_000
"""How long a client may keep a list that is constant while the service runs."""


class OfferRefused(Exception):
    """A protocol error: its code and its sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Offers:
    """Resources and prompts of one service."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def answer(self, method: str, params: Any, who: Principal, *, is_modern: bool) -> dict[str, Any]:
        """The result of a request. Raises OfferRefused for one that cannot be answered."""
        given = params if type(params) is dict else {}
        try:
            result = await self._result(method, given, Resources(self._tools, who))
        except LinkError as error:
            raise OfferRefused(code_of(error, is_modern=is_modern), error.message) from None
        if is_modern and method.endswith(("/list", "/read")):
            result |= {"ttlMs": HOUR_MS if method in CONSTANT else 0, "cacheScope": "private"}
        return result

    async def _result(self, method: str, params: dict[str, Any], resources: Resources) -> dict[str, Any]:
        if method.endswith("/list") and params.get("cursor") is not None:
            raise InvalidRequest("There is no page at this cursor: everything is listed at once.")
        match method:
            case "resources/templates/list":
                return {"resourceTemplates": TEMPLATES}
            case "resources/list":
                return {"resources": await resources.listed()}
            case "resources/read":
                return {"contents": await resources.read(_text(params, "uri"))}
            case "prompts/list":
                return {"prompts": prompts.listed()}
            case "prompts/get":
                arguments = params.get("arguments") or {}
                if type(arguments) is not dict:
                    raise InvalidRequest("A prompt's arguments are an object.")
                return prompts.filled(_text(params, "name"), arguments)
            case _:
                return {"completion": await _completed(params, resources)}


async def _completed(params: dict[str, Any], resources: Resources) -> dict[str, Any]:
    """Values for an argument. A scope that is not there, or may not be read, has none."""
    asked, context = params.get("argument"), params.get("context")
    if type(asked) is not dict or type(params.get("ref")) is not dict:
        raise InvalidRequest("Completion needs a ref and an argument.")
    _check_ref(params["ref"])
    known = context.get("arguments") if type(context) is dict else None
    scope = known.get("scope") if type(known) is dict else None
    try:
        values = await resources.completions(
            _text(asked, "name"), _text(asked, "value"), scope if type(scope) is str else ""
        )
    except LinkError:
        values = []
    return {"values": values, "total": len(values), "hasMore": False}


def _check_ref(ref: dict[str, Any]) -> None:
    if ref.get("type") == "ref/prompt" and ref.get("name") in prompts.PROMPTS:
        return
    if ref.get("type") == "ref/resource" and any(ref.get("uri") == each["uriTemplate"] for each in TEMPLATES):
        return
    raise InvalidRequest("There is no such prompt or resource template.")


def _text(params: dict[str, Any], name: str) -> str:
    value = params.get(name)
    if type(value) is not str:
        raise InvalidRequest(f"`{name}` must be a string.", field=name)
    return value
