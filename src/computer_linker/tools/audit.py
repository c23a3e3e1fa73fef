"""AuditTool: what the tools of this session did. Never sent to another machine."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.tools.base import Tool, ToolContext, ToolResult


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
