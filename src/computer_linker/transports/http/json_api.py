"""/api/v1/control: the same tools for programs that do not speak MCP."""

import base64
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.envelope import Reply
from computer_linker.model.json_text import read_json
from computer_linker.model.principal import Principal
from computer_linker.registry.catalog import OLDER
from computer_linker.transports.compatibility import Compatibility
from computer_linker.transports.mcp.tools import Introspection

if TYPE_CHECKING:
    from computer_linker.transports.compatibility import Compatibility

Action = Callable[[dict[str, Any], Principal], Awaitable[Reply]]

_STATUS = {
    "invalid_request": 400,
    "unknown_scope": 404,
    "unknown_operation": 404,
    "permission_denied": 403,
    "path_out_of_scope": 403,
    "not_found": 404,
    "process_not_found": 404,
    "already_exists": 409,
    "conflict": 409,
    "confirm_required": 403,
    "denied_by_person": 403,
    "no_answer": 408,
    "paused": 503,
    "limit_exceeded": 413,
    "timeout": 504,
}


class JsonApi:
    """Answers one control request. The envelope has the outcome; the HTTP status only approximates it."""

    def __init__(
        self, dispatcher: Dispatcher, introspection: Introspection, actions: dict[str, Action] | None = None
    ) -> None:
        """`actions` are those the service adds."""
        self._dispatcher = dispatcher
        self._introspection = introspection
        self.actions: dict[str, Action] = {
            "get_computer_info": introspection.computer_info,
            "get_operation_history": introspection.operation_history,
            "computer_operation": dispatcher.call_wire,
            **(actions or {}),
        }

    async def control(self, body: bytes, principal: Principal) -> tuple[int, dict[str, Any]]:
        """Return the HTTP status and the answer."""
        try:
            request = read_json(body)
            action, rest = self._parse(request)
        except InvalidRequest as error:
            reply = await self._dispatcher.refuse({}, principal, error)
        else:
            reply = await action(rest, principal)
        return status_of(reply), _whole(reply)

    def _parse(self, request: Any) -> tuple[Action, dict[str, Any]]:
        if type(request) is not dict:
            raise InvalidRequest("A control request is an object {action, ...}.")
        name = request.get("action")
        action = (self.actions.get(name) or self._older(name)) if type(name) is str else None
        if action is None:
            raise InvalidRequest("There is no such action.", actions=sorted(self.actions))
        return action, {key: value for key, value in request.items() if key != "action"}

    def _older(self, name: str) -> Action | None:
        from computer_linker.transports.compatibility import Compatibility

        older = Compatibility(self._dispatcher, self._introspection)
        return _older_action(name, older, self._introspection.operation_history)


def status_of(reply: Reply) -> int:
    """200 for success, else the status nearest to the error's code."""
    error = reply.envelope.get("error")
    return 200 if reply.envelope.get("ok", True) or error is None else _STATUS.get(error["code"], 500)


def _whole(reply: Reply) -> dict[str, Any]:
    """The envelope with the bytes that travel beside it: in JSON they have no other place than the data."""
    if not reply.attachments:
        return reply.envelope
    data = reply.envelope.get("data", reply.envelope)
    plain = data.to_wire() if isinstance(data, Model) else dict(data)
    if len(reply.attachments) == 1 and plain.get("bytesBase64", "") is None:
        plain["bytesBase64"] = base64.b64encode(reply.attachments[0].data).decode("ascii")
        return {**reply.envelope, "data": plain} if "data" in reply.envelope else plain
    count = len(reply.attachments)
    left = f"Not in this answer: {count} image{'s' * (count > 1)}. Ask with `return` base64 or fileRef."
    return {**reply.envelope, "warnings": [*reply.envelope.get("warnings", []), left]}


def _older_action(name: str, compatibility: Compatibility, history: Action) -> Action | None:
    """The action of this older name; None when there is none."""
    match name:
        case "get_capabilities":
            return compatibility.capabilities
        case "list_workspaces":
            return compatibility.list_workspaces
        case "operation_registry":
            return compatibility.registry
        case "workspace_operation_registry":
            return _with(compatibility.registry, contract="workspace")
        case "workspace_operation" | "operation":
            return compatibility.operation
        case "history" | "history_insight":
            return _history(history)
        case _ if name in OLDER:
            return _with(compatibility.operation, operation=name)
    return None


def _with(action: Action, **fixed: Any) -> Action:
    async def run(arguments: dict[str, Any], principal: Principal) -> Reply:
        return await action({**arguments, **fixed}, principal)

    return run


def _history(history: Action) -> Action:
    async def run(arguments: dict[str, Any], principal: Principal) -> Reply:
        asked = {"view": "last", **arguments}
        if "workspace" in asked:
            asked["scope"] = asked.pop("workspace")
        return await history(asked, principal)

    return run
