"""screen.ocr: the text visible on the screen."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import NotFound, PermissionDenied
from computer_linker.model.geometry import ImageMap, Rect
from computer_linker.providers.ocr import Ocr, why_no_ocr
from computer_linker.providers.shots import Frame, Frames, Shot, cut, find_display, shoot
from computer_linker.providers.window_choice import window_by_id
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class OcrOptions(Model):
    language: Annotated[str | None, Field(max_length=60, description="For Tesseract, such as eng or eng+deu.")] = None
    region: Annotated[Rect | None, Field(description="A part, counted from the upper left of the target.")] = None


class OcrLine(Model):
    text: str
    bounds: Annotated[Rect, Field(description="In the image's pixels; a point in it can be clicked with `frameId`.")]
    confidence: float


class ScreenText(Model):
    frame_id: str
    text: Annotated[str, Field(description="The lines from top to bottom.")]
    lines: list[OcrLine]
    engine: str
    width: int
    height: int


@operation(
    "screen.ocr",
    did="read the text on",
    needs={Capability.SCREEN_CAPTURE},
    effect=Effect.OBSERVE,
    text=shapes.TEXT,
    on="computer",
    deadline_s=90,
    facets=("screen",),
    unavailable=why_no_ocr,
    examples=[Example("Read the primary display.", {"target": "primary"}, runs=False)],
)
async def screen_ocr(ctx: Context, target: str = "primary", options: OcrOptions = OcrOptions()) -> ScreenText:
    """Read the text on a display, in a window, or where an earlier capture (`frameId`) looked, as it is now.

    A region is read faster. What captures hide (passwords, excluded applications) is hidden here too.
    """
    shot = await _shot(ctx, target)
    pixmap = cut(shot.pixmap, options.region)
    ocr = ctx.use(Ocr)
    ctx.progress("Reading the text.")
    lines = await ocr.lines(pixmap, options.language)
    mapping = ImageMap(width=pixmap.width, height=pixmap.height, area=pixmap.area)
    frame = ctx.use(Frames).keep(ctx.scope.id, mapping, shot.windows, shot.displays, shot.window_id)
    ctx.note(lines=len(lines), engine=ocr.engine)
    return ScreenText(
        frame_id=frame.id,
        text="\n".join(line.text for line in lines),
        lines=[OcrLine(text=line.text, bounds=line.bounds, confidence=line.confidence) for line in lines],
        engine=ocr.engine,
        width=pixmap.width,
        height=pixmap.height,
    )


async def _shot(ctx: Context, target: str) -> Shot:
    policy, computer = ctx.scope.policy, ctx.computer
    excluded = policy.excluded_applications
    frame: Frame | None = ctx.use(Frames).find(target, scope=ctx.scope.id) if target.startswith("frame_") else None
    window_id = frame.window_id if frame is not None else None
    displays = await computer.screen.displays()
    is_display = target in ("primary", "") or any(display.id == target for display in displays)
    if frame is None and not is_display:
        window_id = target
    if window_id is not None:
        if not policy.allow_windows:
            raise PermissionDenied("This scope does not allow capturing windows.", rule="allowWindows")
        if not computer.capabilities().has("windows"):
            raise NotFound("There is no such display.", displays=[display.id for display in displays])
        window = window_by_id(await computer.windows.list(), window_id, excluded)
        return await shoot(computer, window=window)
    if not policy.allow_displays:
        raise PermissionDenied("This scope does not allow capturing displays.", rule="allowDisplays")
    area = frame.map.area if frame is not None else find_display(displays, target).bounds
    return await shoot(computer, area, excluded=excluded)
