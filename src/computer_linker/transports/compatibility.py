"""Answers of the older tools and actions: the same facts and results in their older shape."""

from pathlib import PurePath
from typing import Any, Protocol

from computer_linker.approvals.approvals import Approver
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import InvalidRequest, LinkError, UnknownScope
from computer_linker.model.base import Model
from computer_linker.model.envelope import Reply
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import sees_scope
from computer_linker.registry.catalog import OLDER
from computer_linker.registry.context import Progress
from computer_linker.registry.older_calls import translate

_PLACE = ("workspace", "workspaceId", "scope")
_FLAGS = {
    "read": "fs:read",
    "write": "fs:write",
    "shell": "command:run",
    "codex": "codex:run",
    "screen": "screen:capture",
}
_SAFETY = {
    "path-enforced": "workspace-path-enforced",
    "scoped-metadata": "workspace-scoped-metadata",
    "sandboxed": "workspace-cwd-only",
}
"""The boundaries as older clients name them. A command starts in the workspace; each result names what else holds it."""
_EVERYTHING = ["identity", "platform", "service", "tools", "scopes", "policy", "status", "operations", "exposure"]
CONTRACT = {
    "request": ["scope", "op", "target", "input", "options", "confirm"],
    "success": [
        "ok",
        "operationId",
        "scope",
        "op",
        "canonicalOp",
        "startedAt",
        "durationMs",
        "data",
        "warnings",
        "effect",
    ],
    "failure": ["ok", "operationId", "scope", "op", "startedAt", "durationMs", "error"],
}


class InfoTool(Protocol):
    """The tool that describes the computer."""

    async def computer_info(self, arguments: dict[str, Any], principal: Principal) -> Reply: ...

    async def diagnostics(self, principal: Principal) -> dict[str, Any]: ...


class Compatibility:
    """The older surface of one service."""

    def __init__(self, dispatcher: Dispatcher, introspection: InfoTool) -> None:
        self._dispatcher = dispatcher
        self._introspection = introspection

    async def capabilities(self, arguments: dict[str, Any], principal: Principal) -> Reply:
        """Computer, workspaces, programs and operations in one answer."""
        reply = await self._introspection.computer_info({"include": _EVERYTHING}, principal)
        if not reply.envelope.get("ok", True):
            return reply
        info = reply.envelope
        readiness: dict[str, dict[str, Any]] = {"required": {}, "recommended": {}, "optional": {}}
        for name, tool in info["tools"].items():
            readiness[tool["need"]][name] = tool
        return Reply(
            {
                **info,
                **await self._introspection.diagnostics(principal),
                "workspaces": [_workspace(scope) for scope in info["scopes"]],
                "toolReadiness": readiness,
                "computerOperationContract": CONTRACT,
                "computerOperationRegistry": info["operations"],
                "operationSafety": [
                    {
                        "operation": op["name"],
                        "boundary": op["boundary"],
                        "safety": _SAFETY.get(op["boundary"], "mixed"),
                    }
                    for op in info["operations"]
                ],
            }
        )

    async def list_workspaces(self, arguments: dict[str, Any], principal: Principal) -> Reply:
        """The scopes visible to this caller, as workspaces."""
        reply = await self._introspection.computer_info({"include": ["identity", "scopes"]}, principal)
        if not reply.envelope.get("ok", True):
            return reply
        names = {name: reply.envelope[name] for name in ("machineId", "machineName")}
        return Reply({**names, "workspaces": [_workspace(scope) for scope in reply.envelope["scopes"]]})

    async def open_workspace(self, arguments: dict[str, Any], principal: Principal) -> Reply:
        """One workspace by its id, name or exact path. Its id is the scope's id: no state is held."""
        given = next((arguments[name] for name in (*_PLACE, "path", "name") if name in arguments), None)
        wanted = self._scope_id(given, principal)
        reply = await self.list_workspaces({}, principal)
        if not reply.envelope.get("ok", True):
            return reply
        for workspace in reply.envelope["workspaces"]:
            if workspace["id"] == wanted:
                return Reply({"workspaceId": wanted, "workspace": workspace})
        return await self._dispatcher.refuse({}, principal, UnknownScope("There is no such workspace."))

    async def operation(
        self,
        arguments: dict[str, Any],
        principal: Principal,
        report: Progress | None = None,
        ask: Approver | None = None,
    ) -> Reply:
        """One older operation; its data directly, or the envelope of a failure."""
        try:
            call = self._call(arguments, principal)
        except LinkError as error:
            return await self._dispatcher.refuse(arguments, principal, error)
        reply = await self._dispatcher.call_wire(call, principal, report, ask)
        return reply if not reply.ok else _older_shape(reply)

    async def registry(self, arguments: dict[str, Any], principal: Principal) -> Reply:
        """The operations under their current names, or with `contract: workspace` under their older ones."""
        reply = await self._introspection.computer_info({"include": ["operations"]}, principal)
        if not reply.envelope.get("ok", True):
            return reply
        known = {op["name"]: op for op in reply.envelope["operations"]}
        if arguments.get("contract", "computer") != "workspace":
            return Reply({"contract": "computer", "shape": CONTRACT, "operations": list(known.values())})
        older = [
            {**known[was.op], "name": name, "op": was.op, "permission": was.permission}
            for name, was in OLDER.items()
            if was.op in known
        ]
        return Reply({"contract": "workspace", "operations": older})

    def _call(self, arguments: dict[str, Any], principal: Principal) -> dict[str, Any]:
        fields = dict(arguments)
        places = [fields.pop(name) for name in _PLACE if name in fields]
        names = [fields.pop(name) for name in ("operation", "op") if name in fields]
        confirm = fields.pop("confirm", None)
        if len(places) != 1:
            raise InvalidRequest("`workspace` names one of the workspaces that list_workspaces lists.")
        if len(names) != 1:
            raise InvalidRequest("`operation` names what to do, such as read or git_diff.")
        call = translate(self._dispatcher.catalog, names[0], fields)
        call["scope"] = self._scope_id(places[0], principal)
        return call if confirm is None else {**call, "confirm": confirm}

    def _scope_id(self, given: Any, principal: Principal) -> Any:
        """The id of the scope with this id, name or exact root; any other value is left for the dispatcher to refuse."""
        if type(given) is not str:
            return given
        seen = [scope for scope in self._dispatcher.services.config.scopes if sees_scope(principal, scope.id)]
        if any(scope.id == given for scope in seen):
            return given
        alike = [scope.id for scope in seen if scope.name == given or given in scope.roots]
        if len(alike) == 1:
            return alike[0]
        return given if alike else _deepest(given, seen) or given


def _deepest(given: str, scopes: list[Scope]) -> str | None:
    """The scope whose root is the deepest above this absolute path; None where there is none, or two share the root."""
    path = PurePath(given)
    if not path.is_absolute() or ".." in path.parts:
        return None
    above = [
        (len(PurePath(root).parts), scope.id) for scope in scopes for root in scope.roots if path.is_relative_to(root)
    ]
    deepest = max(above, default=(0, ""))[0]
    found = {scope_id for depth, scope_id in above if depth == deepest}
    return found.pop() if len(found) == 1 else None


def _workspace(scope: dict[str, Any]) -> dict[str, Any]:
    policy = scope["capabilityPolicy"]
    granted = policy["granted"]
    allowed = scope["allowedOperations"]
    return {
        "id": scope["id"],
        "name": scope["name"],
        "type": scope["type"],
        "permissions": {flag: capability in granted for flag, capability in _FLAGS.items()},
        "allowedOperations": [*allowed, *(name for name, was in OLDER.items() if was.op in allowed)],
        "capabilityPolicy": {**policy, "capabilities": [*granted, *policy["codex"], f"network:{_network(policy)}"]},
    }


def _network(policy: dict[str, Any]) -> str:
    network = policy["network"]
    if isinstance(network, bool) or not network:
        return "true" if network else "false"
    return ",".join(network)


def _older_shape(reply: Reply) -> Reply:
    data = reply.envelope["data"]
    plain = data.to_wire() if isinstance(data, Model) else dict(data)
    if reply.envelope["warnings"]:
        plain["warnings"] = reply.envelope["warnings"]
    return Reply(plain, reply.attachments)
