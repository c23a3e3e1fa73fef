"""browser.trace: what the browser did, event by event."""

from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.operations.browser.paging import KeptInput
from computer_linker.operations.browser.recording import Action, PageRecording, Recording, recorded
from computer_linker.registry import Context, Example, operation

_WHAT = Recording("trace", "browser_trace", "trace.json", ("trace", "start"), ("trace", "stop"))


@operation(
    "browser.trace",
    needs={Capability.COMMAND_RUN, Capability.ARTIFACT_WRITE},
    effect=Effect.CHANGE,
    boundary="sandboxed",
    deadline_s=90,
    examples=[
        Example("Begin.", {"target": "start"}, runs=False),
        Example("End, and keep it.", {"target": "stop"}, runs=False),
    ],
)
async def browser_trace(ctx: Context, target: Action, input: KeptInput = KeptInput()) -> PageRecording:
    """Start or stop a trace of the open page in the format of Chrome's developer tools; stopping keeps it as an artifact."""
    return await recorded(ctx, _WHAT, target, input.owner)
