"""browser.trace: what the browser did, event by event."""

from computer_linker.operations.browser.paging import KeptInput
from computer_linker.operations.browser.recording import Action, PageRecording, Recording, page_recording, recorded
from computer_linker.registry import Context

_WHAT = Recording("trace", "browser_trace", "trace.json", ("trace", "start"), ("trace", "stop"))


@page_recording("browser.trace", "traced the browser[ ({target})]", _WHAT)
async def browser_trace(ctx: Context, target: Action, input: KeptInput = KeptInput()) -> PageRecording:
    """Start or stop a trace of the open page in the format of Chrome's developer tools; stopping keeps it as an artifact."""
    return await recorded(ctx, _WHAT, target, input.owner)
