"""The JSON API's compatibility actions, under their older names."""

from collections.abc import Awaitable, Callable
from typing import Any

from computer_linker.model.envelope import Reply
from computer_linker.model.principal import Principal
from computer_linker.transports.compatibility.names import OLDER
from computer_linker.transports.compatibility.surface import Compatibility

Action = Callable[[dict[str, Any], Principal], Awaitable[Reply]]


def older_action(name: str, compatibility: Compatibility, history: Action) -> Action | None:
    """The action of this older name; None when there never was one."""
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
