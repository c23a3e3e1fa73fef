"""screen.capture_process: a picture of a process's window."""

from computer_linker.errors import PermissionDenied
from computer_linker.operations.screen.reply import Capture, CaptureOptions, reply_with_window, window_capture
from computer_linker.providers.window_choice import window_of_process
from computer_linker.registry import Context, Example


@window_capture(
    "screen.capture_process",
    "took a picture of the process",
    Example("Capture a program's window.", {"target": "xterm"}, runs=False),
)
async def screen_capture_process(ctx: Context, target: str, options: CaptureOptions = CaptureOptions()) -> Capture:
    """Capture the active or topmost visible window of a process, by its id or its exact name."""
    if not ctx.scope.policy.allow_processes:
        raise PermissionDenied("This scope does not allow capturing processes.", rule="allowProcesses")
    return await reply_with_window(ctx, window_of_process, target, options)
