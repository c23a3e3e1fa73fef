"""screen.record: a bounded recording of one display."""

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.artifacts.store import Owner
from computer_linker.errors import ConfigInvalid, Conflict, NotFound, PermissionDenied
from computer_linker.operations.artifact.answer import ArtifactFacts, facts
from computer_linker.policy.engine import holds
from computer_linker.providers.recording.recorder import Order, Recording, Recordings
from computer_linker.providers.shots import find_display
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

Action = Literal["start", "stop"]


class RecordInput(Model):
    display: Annotated[str, Field(max_length=80, description="A display's id, or `primary`.")] = "primary"
    owner: Annotated[str | None, Field(max_length=120, description="A free label for what is kept.")] = None


class RecordOptions(Model):
    max_seconds: Annotated[float, Field(gt=0, le=300, description="It ends by itself after this time.")] = 60
    fps: Annotated[float, Field(ge=0.2, le=10, description="Frames a second.")] = 4
    max_width: Annotated[int, Field(ge=160, le=1920, description="Of the video.")] = 1280


class ScreenRecording(Model):
    status: Literal["recording", "stopped"]
    recording_id: str
    method: Annotated[Literal["video", "frames"], Field(description="frames where ffmpeg is not installed.")]
    seconds: float
    frames: int
    ended_by: Annotated[str | None, Field(description="asked, time, size, failed or service.")] = None
    hidden_areas: Annotated[int, Field(description="The most areas that were painted over in one frame.")] = 0
    artifacts: Annotated[list[ArtifactFacts], Field(description="The video or the frames, and a contact sheet.")] = []


async def _show(
    ctx: Context, target: Action, input: RecordInput = RecordInput(), options: RecordOptions = RecordOptions()
) -> Preview:
    """The display that would be recorded, or that a recording would end. Refused where neither can be."""
    _check_allowed(ctx)
    is_running = ctx.use(Recordings).is_running((ctx.scope.id, ctx.principal.id))
    if target == "stop":
        if is_running is None:
            raise NotFound("No recording of yours is running in this scope.")
        return Preview(("ends the recording of the screen and keeps it as evidence",))
    display = find_display(await ctx.computer.screen.displays(), input.display)
    return Preview(
        (f"records the display {display.id} for at most {options.max_seconds:g} seconds",),
        obstacle=Conflict("A recording is running already; stop it first.") if is_running else None,
    )


def _check_allowed(ctx: Context) -> None:
    if not ctx.scope.policy.allow_displays:
        raise PermissionDenied("This scope does not allow capturing displays.", rule="allowDisplays")


@operation(
    "screen.record",
    did="recorded the screen[ ({target})]",
    needs={Capability.SCREEN_CAPTURE, Capability.ARTIFACT_WRITE},
    effect=Effect.CHANGE,
    shows=_show,
    text=shapes.ARTIFACTS,
    on="computer",
    deadline_s=90,
    facets=("screen",),
    examples=[
        Example("Begin, for ten seconds at most.", {"target": "start", "options": {"maxSeconds": 10}}, runs=False),
        Example("End, and keep the video and a contact sheet.", {"target": "stop"}, runs=False),
    ],
)
async def screen_record(
    ctx: Context,
    target: Action,
    input: RecordInput = RecordInput(),
    options: RecordOptions = RecordOptions(),
) -> ScreenRecording:
    """Start or stop recording a display. Stopping keeps a video (with ffmpeg; else frames) and a contact sheet as artifacts.

    Password fields and applications the scope excludes are painted over in every frame. A recording ends by itself after
    `maxSeconds`, when its file is full, or with the service; `stop` then gives what there is.
    """
    policy = ctx.scope.policy
    _check_allowed(ctx)
    recordings, key = ctx.use(Recordings), (ctx.scope.id, ctx.principal.id)
    if target == "stop":
        made = await recordings.stop(key)
        ctx.effect = "confirmed" if made.kept else "partial"
        if made.sheet_png:
            ctx.attach("image/png", made.sheet_png)
    else:
        area = find_display(await ctx.computer.screen.displays(), input.display).bounds
        owner = Owner(
            ctx.scope.id, ctx.principal.id, ctx.principal.session, ctx.operation_id, input.owner or "", "local"
        )
        seconds = min(options.max_seconds, policy.max_runtime_seconds)
        limits = (options.fps, seconds, options.max_width)
        order = Order(owner, area, policy.excluded_applications, *limits, partial(_is_allowed, ctx))
        made = await recordings.start(key, order)
        ctx.effect = "confirmed"
    return _reported(ctx, made, is_over=target == "stop")


def _is_allowed(ctx: Context) -> bool:
    """Whether the scope still allows this caller to record."""
    try:
        scope = ctx.services.config.scope(ctx.scope.id)
    except ConfigInvalid:
        return False
    if scope is None or scope is ctx.scope:
        return scope is not None
    policy = scope.policy
    has_right = policy.allow_displays and holds(ctx.principal, scope, Capability.SCREEN_CAPTURE)
    return has_right and policy.excluded_applications == ctx.scope.policy.excluded_applications


def _reported(ctx: Context, made: Recording, *, is_over: bool) -> ScreenRecording:
    if made.problem:
        ctx.warn(f"The recording ended early: {made.problem}")
    if is_over and not made.all_asked:
        ctx.warn("Some applications could not say where their password fields are; such fields are not hidden.")
    ctx.note(frames=made.frames, seconds=round(made.lasted_s, 1), artifacts=len(made.kept), hidden=made.hidden)
    return ScreenRecording(
        status="stopped" if is_over else "recording",
        recording_id=made.id,
        method=made.method,
        seconds=round(made.lasted_s, 3),
        frames=made.frames,
        ended_by=made.ending if is_over else None,
        hidden_areas=made.hidden,
        artifacts=[facts(artifact) for artifact in made.kept],
    )
