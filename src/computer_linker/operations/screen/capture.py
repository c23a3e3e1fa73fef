"""screen.capture: a picture of one display."""

from computer_linker.errors import PermissionDenied
from computer_linker.operations.screen.reply import Capture, CaptureOptions, CaptureSource, reply_with
from computer_linker.providers.shots import find_display, shoot
from computer_linker.registry import Capability, Context, Effect, Example, operation


@operation(
    "screen.capture",
    did="took a screenshot of",
    needs={Capability.SCREEN_CAPTURE},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=20,
    facets=("screen",),
    examples=[
        Example("Capture the primary display.", {"target": "primary"}, runs=False),
        Example(
            "A part of it as a small JPEG.",
            {
                "target": "primary",
                "options": {"format": "jpeg", "maxWidth": 800, "region": {"x": 0, "y": 0, "width": 400, "height": 300}},
            },
            runs=False,
        ),
    ],
)
async def screen_capture(ctx: Context, target: str = "primary", options: CaptureOptions = CaptureOptions()) -> Capture:
    """Capture a display by its id, or the `primary` one, as an image block, base64 or a file.

    Images fit what clients accept (2000 pixels, 1 MB); `frameId` keeps the exact mapping, so that a point in the
    image can be clicked. Password fields and applications the scope excludes are painted over.
    """
    if not ctx.scope.policy.allow_displays:
        raise PermissionDenied("This scope does not allow capturing displays.", rule="allowDisplays")
    display = find_display(await ctx.computer.screen.displays(), target)
    shot = await shoot(
        ctx.computer, display.bounds, cursor=options.cursor, excluded=ctx.scope.policy.excluded_applications
    )
    return await reply_with(ctx, shot, CaptureSource(type="display", id=display.id), options)
