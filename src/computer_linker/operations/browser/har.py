"""browser.har: what the page asked of the network."""

from computer_linker.operations.browser.paging import KeptInput
from computer_linker.operations.browser.recording import Action, PageRecording, Recording, page_recording, recorded
from computer_linker.registry import Context

_WHAT = Recording("har", "network_log", "network.har", ("network", "har", "start"), ("network", "har", "stop"))


@page_recording("browser.har", "recorded network traffic of the browser[ ({target})]", _WHAT)
async def browser_har(ctx: Context, target: Action, input: KeptInput = KeptInput()) -> PageRecording:
    """Start or stop a log of the open page's requests (HAR); stopping keeps it as an artifact. It holds addresses and headers."""
    return await recorded(ctx, _WHAT, target, input.owner)
