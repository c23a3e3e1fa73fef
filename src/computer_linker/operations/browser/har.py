"""browser.har: what the page asked of the network."""

from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.operations.browser.paging import KeptInput
from computer_linker.operations.browser.recording import Action, PageRecording, Recording, recorded
from computer_linker.registry import Context, Example, operation

_WHAT = Recording("har", "network_log", "network.har", ("network", "har", "start"), ("network", "har", "stop"))


@operation(
    "browser.har",
    needs={Capability.COMMAND_RUN, Capability.ARTIFACT_WRITE},
    effect=Effect.CHANGE,
    boundary="sandboxed",
    deadline_s=90,
    examples=[
        Example("Begin.", {"target": "start"}, runs=False),
        Example("End, and keep it.", {"target": "stop"}, runs=False),
    ],
)
async def browser_har(ctx: Context, target: Action, input: KeptInput = KeptInput()) -> PageRecording:
    """Start or stop a log of the open page's requests (HAR); stopping keeps it as an artifact. It holds addresses and headers."""
    return await recorded(ctx, _WHAT, target, input.owner)
