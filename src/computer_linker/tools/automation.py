"""LearnTool, ScheduleTool and AuditTool: notes, scheduled calls and the log of a session. Never sent to another machine."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from computer_linker.errors import InvalidRequest, LimitExceeded, NotFound
from computer_linker.model.base import Model
from computer_linker.model.ids import new_handle
from computer_linker.tools.base import Tool, ToolContext, ToolResult

_MAX_LEARNED = 200
_MAX_SCHEDULED = 100


class LearnParams(Model):
    action: Literal["remember", "recall", "list", "forget"]
    name: Annotated[str | None, Field(max_length=100)] = None
    content: Annotated[str | None, Field(max_length=10_000)] = None


class LearnTool(Tool[LearnParams]):
    name = "learn"
    description = "Remember how something is done, and recall it later in this session."
    Params = LearnParams

    async def execute(self, params: LearnParams, ctx: ToolContext) -> ToolResult:
        known = ctx.learned
        if params.action == "list":
            return ToolResult(f"{len(known)} things learned", "\n".join(sorted(known)))
        if not params.name:
            raise InvalidRequest("`name` is needed.")
        match params.action:
            case "remember":
                if params.content is None:
                    raise InvalidRequest("`content` is needed to remember.")
                if len(known) >= _MAX_LEARNED and params.name not in known:
                    raise LimitExceeded(f"A session remembers at most {_MAX_LEARNED} things.")
                known[params.name] = params.content
                return ToolResult(f"Remembered {params.name}")
            case "recall":
                if params.name not in known:
                    raise NotFound(f"Nothing is remembered as {params.name!r}.")
                return ToolResult(params.name, known[params.name])
            case "forget":
                known.pop(params.name, None)
                return ToolResult(f"Forgot {params.name}")


@dataclass(frozen=True, slots=True)
class Planned:
    """One scheduled use of a tool."""

    id: str
    due: float
    tool: str
    arguments: dict[str, Any]


class ScheduleParams(Model):
    action: Literal["add", "list", "cancel", "run_due"]
    after_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0
    tool: Annotated[str | None, Field(max_length=64)] = None
    arguments: dict[str, Any] = {}
    id: Annotated[str | None, Field(max_length=64)] = None


class ScheduleTool(Tool[ScheduleParams]):
    name = "schedule"
    description = "Plan the use of another tool for later in this session; `run_due` does what is due."
    Params = ScheduleParams

    def __init__(self, tools: dict[str, Tool[Any]]) -> None:
        self._tools = tools
        self._planned: dict[str, Planned] = {}

    async def execute(self, params: ScheduleParams, ctx: ToolContext) -> ToolResult:
        match params.action:
            case "add":
                return self._add(params)
            case "list":
                now = time.monotonic()
                lines = [f"{one.id} {one.tool} in {max(0.0, one.due - now):.0f} s" for one in self._planned.values()]
                return ToolResult(f"{len(lines)} planned", "\n".join(lines))
            case "cancel":
                if self._planned.pop(params.id or "", None) is None:
                    raise NotFound("Nothing is planned under this id.")
                return ToolResult("Cancelled")
            case "run_due":
                return await self._run_due(ctx)

    def _add(self, params: ScheduleParams) -> ToolResult:
        if params.tool not in self._tools or params.tool == self.name:
            raise InvalidRequest("`tool` must be another tool of this session.", tools=sorted(self._tools))
        if len(self._planned) >= _MAX_SCHEDULED:
            raise LimitExceeded(f"At most {_MAX_SCHEDULED} things can be planned.")
        planned = Planned(new_handle("plan"), time.monotonic() + params.after_seconds, params.tool, params.arguments)
        self._planned[planned.id] = planned
        return ToolResult("Planned", planned.id, metadata={"id": planned.id})

    async def _run_due(self, ctx: ToolContext) -> ToolResult:
        now = time.monotonic()
        due = [one for one in self._planned.values() if one.due <= now]
        lines: list[str] = []
        for one in due:
            del self._planned[one.id]
            # Permission is asked now, when it runs, not when it was planned.
            result = await self._tools[one.tool].run(one.arguments, ctx)
            lines.append(f"{one.tool}: {result.error or result.title}")
        return ToolResult(f"{len(due)} done", "\n".join(lines))


class AuditParams(Model):
    limit: Annotated[int, Field(ge=1, le=1000)] = 50


class AuditTool(Tool[AuditParams]):
    name = "audit"
    description = "List what the tools of this session did, newest last. Typed text and pictures are not kept."
    Params = AuditParams

    async def execute(self, params: AuditParams, ctx: ToolContext) -> ToolResult:
        lines = [
            f"{datetime.fromtimestamp(one.at, UTC).isoformat(timespec='seconds')} {one.tool} {one.argument} "
            f"{'ok' if one.ok else 'failed'} {one.duration_ms:g} ms"
            for one in ctx.log[-params.limit :]
        ]
        return ToolResult(f"{len(lines)} uses", "\n".join(lines))
