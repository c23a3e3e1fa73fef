"""artifact.capture: a picture of the desktop, kept as proof."""

from typing import Annotated, Literal

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.store import Owner
from computer_linker.errors import ExecutionFailed, PermissionDenied, wire_codes
from computer_linker.model.envelope import Call, Reply
from computer_linker.operations.artifact.answer import KeptArtifact, Label, facts
from computer_linker.providers.shots import find_display
from computer_linker.providers.window_choice import window_by_id, window_of_process
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_OPERATIONS = {"display": "screen.capture", "window": "screen.capture_window", "process": "screen.capture_process"}
_RULES = {"display": "allowDisplays", "window": "allowWindows", "process": "allowProcesses"}


class CaptureInput(Model):
    source: Annotated[
        Literal["display", "window", "process"], Field(description="What the target names, as in screen.capture*.")
    ] = "display"
    title: Annotated[str | None, Field(max_length=200)] = None
    owner: Label = None


async def _show(ctx: Context, target: str = "primary", input: CaptureInput = CaptureInput()) -> Preview:
    """The display or window that a picture would be kept of. Refused where there is none, or the scope hides it."""
    policy = ctx.scope.policy
    _check_local(ctx)
    may = {"display": policy.allow_displays, "window": policy.allow_windows, "process": policy.allow_processes}
    if not may[input.source]:
        raise PermissionDenied(f"This scope does not allow capturing a {input.source}.", rule=_RULES[input.source])
    if input.source == "display":
        display = find_display(await ctx.computer.screen.displays(), target)
        return Preview((f"keeps a picture of the display {display.id} as evidence",))
    choose = window_by_id if input.source == "window" else window_of_process
    window = choose(await ctx.computer.windows.list(), target, policy.excluded_applications)
    return Preview((f'keeps a picture of the window "{window.title}" of {window.app} as evidence',))


def _check_local(ctx: Context) -> None:
    if not ctx.scope.policy.allow_local_fallback:
        raise PermissionDenied(
            "This scope takes proof from other programs only; backend.status says which are here.",
            rule="allowLocalFallback",
        )


@operation(
    "artifact.capture",
    did="kept a picture[ of {target}] as evidence",
    needs={Capability.SCREEN_CAPTURE, Capability.ARTIFACT_WRITE},
    effect=Effect.CHANGE,
    shows=_show,
    text=shapes.ARTIFACTS,
    on="computer",
    deadline_s=30,
    facets=("screen",),
    examples=[Example("Keep a picture of the primary display.", {"target": "primary"}, runs=False)],
)
async def artifact_capture(ctx: Context, target: str = "primary", input: CaptureInput = CaptureInput()) -> KeptArtifact:
    """Capture a display, window or process as screen.capture does, masked alike, and keep the picture.

    It is this computer's own desktop, which other programs may be meant to stand before: the scope's policy can forbid it
    with `allowLocalFallback`.
    """
    _check_local(ctx)
    reply = await ctx.dispatch(Call(ctx.scope.id, _OPERATIONS[input.source], target, None, {"return": "bytes"}))
    content = _picture(reply)
    owner = Owner(ctx.scope.id, ctx.principal.id, ctx.principal.session, ctx.operation_id, input.owner or "", "local")
    broker = ctx.use(ArtifactBroker)
    kept = await broker.keep(content, "screenshot", input.title or f"{input.source} {target}"[:200], owner)
    ctx.warnings.extend(reply.envelope["warnings"])
    ctx.effect = "confirmed" if await broker.content(kept) == content else "partial"
    ctx.note(artifact=kept.id, kind=kept.kind, bytes=kept.size, sha256=kept.sha256)
    return KeptArtifact(artifact=facts(kept))


def _picture(reply: Reply) -> bytes:
    if not reply.ok:
        error = reply.envelope["error"]
        raise wire_codes().get(error["code"], ExecutionFailed)(error["message"], **error["details"])
    if not reply.attachments:
        raise ExecutionFailed("The capture came without a picture.")
    return reply.attachments[0].data
