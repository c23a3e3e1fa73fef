"""All tools of one session."""

from typing import Any

from computer_linker.tools.app import AppTool
from computer_linker.tools.audit import AuditTool
from computer_linker.tools.automation import LearnTool, ScheduleTool
from computer_linker.tools.base import Tool
from computer_linker.tools.clipboard import ClipboardTool
from computer_linker.tools.keyboard import KeyboardTool
from computer_linker.tools.mouse import MouseTool
from computer_linker.tools.ocr import OCRTool
from computer_linker.tools.screenshot import ScreenshotTool
from computer_linker.tools.ui import UITool


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
