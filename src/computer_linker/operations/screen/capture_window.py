"""screen.capture_window: a picture of one window, also where others cover it."""

from computer_linker.errors import PermissionDenied
from computer_linker.operations.screen.reply import Capture, CaptureOptions, reply_with_window, window_capture
from computer_linker.providers.window_choice import window_by_id
from computer_linker.registry import Context, Example


@window_capture(
    "screen.capture_window",
    "took a picture of the window",
    Example("Capture a window.", {"target": "0x1e00003"}, runs=False),
)
async def screen_capture_window(ctx: Context, target: str, options: CaptureOptions = CaptureOptions()) -> Capture:
    """Capture one window's content by its id from screen.list, also where other windows cover it."""
    if not ctx.scope.policy.allow_windows:
        raise PermissionDenied("This scope does not allow capturing windows.", rule="allowWindows")
    return await reply_with_window(ctx, window_by_id, target, options)
