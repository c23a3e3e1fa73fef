"""Tools for people who build agents: thin classes over any Computer, local, simulated or remote.

`toolbox()` makes them all. Each takes a `ToolContext`, asks its permission handler before it acts, and answers with a
`ToolResult`. Swap the computer, and the same tools work on another machine.
"""

from computer_linker.tools.base import (
    Attachment,
    PermissionAsked,
    PermissionDeniedError,
    Tool,
    ToolContext,
    ToolResult,
)
from computer_linker.tools.toolbox import toolbox

__all__ = ["Attachment", "PermissionAsked", "PermissionDeniedError", "Tool", "ToolContext", "ToolResult", "toolbox"]
