"""What the screen operations share: the capture options, and the conversion of a shot to a reply."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from anyio import to_thread
from pydantic import Field

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import PermissionDenied
from computer_linker.model.envelope import Call
from computer_linker.model.geometry import ImageMap, Rect, Window
from computer_linker.providers.images import MAX_MARKS, Encoded, Fit, ImageFormat, Mark, Marked, choose, draw, encode
from computer_linker.providers.shots import Captures, Frames, Shot, cut, is_excluded, shoot
from computer_linker.registry import Capability, Context, Effect, Example, Model, Operation, operation

FILE_LIMIT = 50_000_000
_MAX_APPS = 6
Choose = Callable[[list[Window], str, Sequence[str]], Window]


class CaptureOptions(Model):
    """What to capture of the target, and how to give it."""

    format: ImageFormat = "png"
    max_width: Annotated[int | None, Field(gt=0, description="Scale down to this; never up.")] = None
    max_height: Annotated[int | None, Field(gt=0, description="Scale down to this; never up.")] = None
    region: Annotated[Rect | None, Field(description="A part, counted from the upper left of what is captured.")] = None
    cursor: Annotated[bool, Field(description="Draw the mouse cursor.")] = False
    marks: Annotated[bool, Field(description="Number the controls, and list them.")] = False
    returns: Annotated[
        Literal["bytes", "base64", "fileRef"],
        Field(alias="return", description="An image block, base64 in the data, or a file of the service."),
    ] = "bytes"

    @property
    def fit(self) -> Fit:
        """The limits of clients, narrowed to the request; a file may be as large as the screen."""
        limit = Fit(100_000, 100_000, FILE_LIMIT) if self.returns == "fileRef" else Fit()
        return Fit(
            min(limit.max_width, self.max_width or limit.max_width),
            min(limit.max_height, self.max_height or limit.max_height),
            limit.max_bytes,
        )


class CaptureSource(Model):
    type: Literal["display", "window"]
    id: str


class Capture(Model):
    """A capture. Points in the image are bound to `frameId`: use it with desktop.click and the like."""

    frame_id: str
    format: ImageFormat
    width: int
    height: int
    scale: Annotated[float, Field(description="Image pixels a desktop unit.")]
    area: Annotated[Rect, Field(description="The part of the desktop it shows.")]
    source: CaptureSource
    size: Annotated[int, Field(description="Bytes of the encoded image.")]
    bytes_base64: str | None = None
    file_ref: Annotated[str | None, Field(description="A path in the service's own folder.")] = None
    hidden_areas: Annotated[int, Field(description="Password fields and excluded applications painted over.")] = 0
    marks: list[Mark] | None = None


async def reply_with(ctx: Context, shot: Shot, source: CaptureSource, options: CaptureOptions) -> Capture:
    """Return a shot in the requested form; the frame stores how its pixels map to the desktop."""
    pixmap = cut(shot.pixmap, options.region)
    marks = None
    if options.marks:
        marks = await _controls(ctx, shot, pixmap.area)
        pixmap = await to_thread.run_sync(draw, pixmap, marks)
    image = await encoded(pixmap, options)
    frame = ctx.use(Frames).keep(ctx.scope.id, image.map, shot.windows, shot.displays, shot.window_id)
    _warn(ctx, pixmap.map, image.map, shot)
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
        marks=None if marks is None else [mark.in_image(image.map) for mark in marks],
    )  # fmt: skip


def window_capture(name: str, did: str, example: Example) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Define an operation that captures a window."""
    return operation(
        name,
        did=did,
        needs={Capability.SCREEN_CAPTURE},
        effect=Effect.OBSERVE,
        on="computer",
        deadline_s=20,
        facets=("screen", "windows"),
        examples=[example],
    )


async def reply_with_window(ctx: Context, choose: Choose, target: str, options: CaptureOptions) -> Capture:
    """Capture the window of a target, out of those the scope does not hide."""
    window = choose(await ctx.computer.windows.list(), target, ctx.scope.policy.excluded_applications)
    shot = await shoot(ctx.computer, window=window, cursor=options.cursor)
    return await reply_with(ctx, shot, CaptureSource(type="window", id=window.id), options)


async def _controls(ctx: Context, shot: Shot, area: Rect) -> list[Marked]:
    """The visible controls, read through the dispatcher, so that `desktop:observe` and its limits apply."""
    marks: list[Marked] = []
    for window in _marked_windows(shot, area, ctx.scope.policy.excluded_applications):
        reply = await ctx.dispatch(
            Call(ctx.scope.id, "ui.tree", {"pid": window.pid}, None, {"maxNodes": 2000, "maxDepth": 32})
        )
        if reply.ok:
            data = reply.envelope["data"]
            nodes = (data.to_wire() if isinstance(data, Model) else data)["nodes"]
            stack = [window] if shot.window_id is not None else shot.windows
            marks += choose(nodes, window, stack, area)
        elif reply.envelope["error"]["code"] == "permission_denied":
            raise PermissionDenied(
                "Marks also need desktop:observe, which this scope does not allow.", missing=["desktop:observe"]
            )
        else:
            ctx.warn(f"No marks for {window.app}: {reply.envelope['error']['message'][:200]}")
    return [replace(mark, number=number) for number, mark in enumerate(marks[:MAX_MARKS], start=1)]


def _marked_windows(shot: Shot, area: Rect, excluded: Sequence[str]) -> list[Window]:
    """One window a process: those visible in the picture, topmost first."""
    found: dict[int, Window] = {}
    for window in shot.windows:
        wanted = shot.window_id is None or window.id == shot.window_id
        shows = window.is_visible and not window.bounds.intersection(area).is_empty
        if wanted and shows and window.pid is not None and not is_excluded(window, excluded):
            found.setdefault(window.pid, window)
    return list(found.values())[:_MAX_APPS]


def _warn(ctx: Context, full: ImageMap, given: ImageMap, shot: Shot) -> None:
    if given.width < full.width:
        ctx.warn(f"Scaled from {full.width} x {full.height} to {given.width} x {given.height} pixels.")
    if shot.hidden:
        ctx.warn(f"{shot.hidden} areas with passwords or excluded applications are painted over.")
    if shot.silent:
        ctx.warn(
            f"{shot.silent} windows are painted over whole: their applications did not say in time where their password "
            "fields are. Capture again once they answer."
        )
    elif not shot.all_asked:
        ctx.warn("Some applications in sight do not describe their controls; password fields of theirs are not hidden.")


async def encoded(pixmap: Pixmap, options: CaptureOptions) -> Encoded:
    """Encode in a worker thread: it takes milliseconds, or more for a large or noisy picture."""
    return await to_thread.run_sync(encode, pixmap, options.format, options.fit)


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
