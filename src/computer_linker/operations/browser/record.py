"""browser.record: a video of the open page."""

from computer_linker.operations.browser.paging import KeptInput
from computer_linker.operations.browser.recording import Action, PageRecording, Recording, page_recording, recorded
from computer_linker.registry import Context

# Thirty frames a second, the default, are more than a busy machine encodes in time.
_WHAT = Recording(
    "record", "video_recording", "page.webm", ("record", "start"), ("record", "stop"), "start", ("--fps", "8")
)


@page_recording("browser.record", "recorded the browser[ ({target})]", _WHAT)
async def browser_record(ctx: Context, target: Action, input: KeptInput = KeptInput()) -> PageRecording:
    """Start or stop a video of the open page (needs ffmpeg); stopping keeps it as an artifact."""
    return await recorded(ctx, _WHAT, target, input.owner)
