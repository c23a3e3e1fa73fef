"""From a shot to a reply: cut, mark, encode, remember the frame."""

from anyio import to_thread

from computer_linker.model.geometry import ImageMap
from computer_linker.providers.capture_reply import Capture, CaptureOptions, CaptureSource, as_base64, encoded
from computer_linker.providers.captures import Captures
from computer_linker.providers.frames import Frames
from computer_linker.providers.shots import Shot, cut
from computer_linker.registry import Context


async def reply_with(ctx: Context, shot: Shot, source: CaptureSource, options: CaptureOptions) -> Capture:
    """Give a shot in the way asked for; the frame remembers how its pixels map to the desktop."""
    pixmap = cut(shot.pixmap, options.region)
    marks = None
    if options.marks:
        from computer_linker.providers.marks import marked

        pixmap, marks = await marked(ctx, pixmap, shot)
    image = await encoded(pixmap, options)
    frame = ctx.use(Frames).keep(ctx.scope.id, image.map, shot.windows, shot.displays, shot.window_id)
    _tell(ctx, pixmap.map, image.map, shot.hidden)
    ctx.note(width=image.map.width, height=image.map.height, bytes=len(image.data), hidden=shot.hidden)
    text, path = None, None
    match options.returns:
        case "bytes":
            ctx.attach(image.mime, image.data)
        case "base64":
            text = as_base64(image.data)
        case "fileRef":
            path = str(await to_thread.run_sync(ctx.use(Captures).keep, image.data, image.format))
    return Capture(
        frame_id=frame.id, format=image.format, width=image.map.width, height=image.map.height,
        scale=round(image.map.scale, 6), area=image.map.area, source=source, size=len(image.data),
        bytes_base64=text, file_ref=path, hidden_areas=shot.hidden,
        marks=None if marks is None else [mark.in_image(pixmap.map, image.map) for mark in marks],
    )  # fmt: skip


def _tell(ctx: Context, full: ImageMap, given: ImageMap, hidden: int) -> None:
    if given.width < full.width:
        ctx.warn(f"Scaled from {full.width} x {full.height} to {given.width} x {given.height} pixels.")
    if hidden:
        ctx.warn(f"{hidden} areas with passwords or excluded applications are painted over.")
