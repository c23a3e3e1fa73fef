"""browser.record: a video of the open page."""

from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.operations.browser.paging import KeptInput
from computer_linker.operations.browser.recording import Action, PageRecording, Recording, recorded
from computer_linker.registry import Context, Example, operation

_WHAT = Recording("record", "video_recording", "page.webm", ("record", "start"), ("record", "stop"), "start")


@operation(
    "browser.record",
    needs={Capability.COMMAND_RUN, Capability.ARTIFACT_WRITE},
    effect=Effect.CHANGE,
    boundary="sandboxed",
    deadline_s=90,
    examples=[
        Example("Begin.", {"target": "start"}, runs=False),
        Example("End, and keep it.", {"target": "stop"}, runs=False),
    ],
)
async def browser_record(ctx: Context, target: Action, input: KeptInput = KeptInput()) -> PageRecording:
    """Start or stop a video of the open page (needs ffmpeg); stopping keeps it as an artifact."""
    return await recorded(ctx, _WHAT, target, input.owner)
