"""The older MCP tools, listed only under COMPUTER_LINKER_MCP_TOOL_SURFACE=compatibility."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from computer_linker.approvals.approvals import Approver
from computer_linker.model.envelope import Reply
from computer_linker.model.principal import Principal
from computer_linker.registry.context import Progress

if TYPE_CHECKING:
    from computer_linker.transports.compatibility import Compatibility
    from computer_linker.transports.mcp.tools import Run

_WORKSPACE = {"type": "string", "description": "A workspace id of list_workspaces."}
_PATH = {"type": "string", "description": "Relative to the workspace."}
_NUMBER = {"type": "integer", "minimum": 1}
_FLAG = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class OlderTool:
    """A tool's listing, and the function that runs it."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    run: "Run"
    observes: bool = True


def older_tools(compatibility: "Compatibility") -> list[OlderTool]:
    """The nine tools of the older surface."""
    asked = _Runners(compatibility)
    return [
        OlderTool(
            "get_capabilities", "Capabilities", "All there is to know of this computer.", _schema({}),
            asked.capabilities,
        ),
        OlderTool("list_workspaces", "Workspaces", "The workspaces you may use.", _schema({}), asked.workspaces),
        OlderTool(
            "open_workspace", "Open workspace", "One workspace by id, name or exact path.",
            _schema({"workspace": {"type": "string"}}, "workspace"), asked.open,
        ),
        OlderTool(
            "workspace_operation", "Workspace operation",
            "Run one operation of a workspace: read, write, search_text, git_diff, command, ... with its fields beside it, "
            "or as {workspace, op, target, input, options}.",
            {"type": "object", "properties": {"workspace": _WORKSPACE, "operation": {"type": "string"}}},
            asked.operation, observes=False,
        ),
        OlderTool(
            "read", "Read", "Read a file.",
            _place({"path": _PATH, "startLine": _NUMBER, "lineCount": _NUMBER, "maxBytes": _NUMBER}, "path"),
            asked.named("read"),
        ),
        OlderTool("ls", "List", "List a folder.", _place({"path": _PATH, "maxResults": _NUMBER}), asked.named("ls")),
        OlderTool(
            "grep", "Search text", "Search the text of files.",
            _place(
                {
                    "pattern": {"type": "string"}, "path": _PATH, "glob": {"type": "string"}, "ignoreCase": _FLAG,
                    "fixedStrings": _FLAG, "maxResults": _NUMBER,
                },
                "pattern",
            ),
            asked.named("grep"),
        ),
        OlderTool(
            "glob", "Find files", "Find files by name.",
            _place({"pattern": {"type": "string"}, "path": _PATH, "maxResults": _NUMBER}, "pattern"),
            asked.named("glob"),
        ),
        OlderTool(
            "create_file", "Create file", "Create a file that is not there yet.",
            _place({"path": _PATH, "content": {"type": "string"}, "createParents": _FLAG}, "path", "content"),
            asked.named("create_file"), observes=False,
        ),
    ]  # fmt: skip


class _Runners:
    """The function of each tool, with the signature all tools have."""

    def __init__(self, compatibility: "Compatibility") -> None:
        self._of = compatibility

    async def capabilities(
        self, arguments: dict[str, Any], who: Principal, report: Progress | None, ask: Approver | None
    ) -> Reply:
        return await self._of.capabilities(arguments, who)

    async def workspaces(
        self, arguments: dict[str, Any], who: Principal, report: Progress | None, ask: Approver | None
    ) -> Reply:
        return await self._of.list_workspaces(arguments, who)

    async def open(
        self, arguments: dict[str, Any], who: Principal, report: Progress | None, ask: Approver | None
    ) -> Reply:
        return await self._of.open_workspace(arguments, who)

    async def operation(
        self, arguments: dict[str, Any], who: Principal, report: Progress | None, ask: Approver | None
    ) -> Reply:
        return await self._of.operation(arguments, who, report, ask)

    def named(self, name: str) -> "Run":
        async def run(
            arguments: dict[str, Any], who: Principal, report: Progress | None, ask: Approver | None
        ) -> Reply:
            return await self._of.operation({**arguments, "operation": name}, who, report, ask)

        return run


def _schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _place(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return _schema({"workspaceId": _WORKSPACE, **properties}, "workspaceId", *required)
