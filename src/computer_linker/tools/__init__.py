"""Tools for people who build agents: adapters from a model's tool calls to operations on any Computer.

`toolbox()` creates them all. Each takes a `ToolContext`, asks its permission handler before it acts, and returns a
`ToolResult`. Their calls go through the dispatcher: device queue, history and read-back are those of any client.
Pass another computer, and the same tools work on another machine.
"""

from typing import Any

from computer_linker.tools.automation import AuditTool, LearnTool, ScheduleTool
from computer_linker.tools.base import (
    Attachment,
    PermissionAsked,
    PermissionDeniedError,
    Tool,
    ToolContext,
    ToolResult,
)
from computer_linker.tools.desktop import AppTool, OCRTool, ScreenshotTool, UITool
from computer_linker.tools.input import ClipboardTool, KeyboardTool, MouseTool

__all__ = ["Attachment", "PermissionAsked", "PermissionDeniedError", "Tool", "ToolContext", "ToolResult", "toolbox"]


def toolbox() -> dict[str, Tool[Any]]:
    """One of each tool, by name."""
    tools: dict[str, Tool[Any]] = {}
    for tool in (
        ScreenshotTool(), MouseTool(), KeyboardTool(), UITool(), AppTool(), ClipboardTool(), OCRTool(), LearnTool(),
        AuditTool(),
    ):  # fmt: skip
        tools[tool.name] = tool
    tools["schedule"] = ScheduleTool(tools)
    return tools
