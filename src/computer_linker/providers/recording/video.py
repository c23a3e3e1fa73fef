"""Encodes frames as a video: by ffmpeg through a pipe, bounded in size, killed when it stops reading."""

import io
import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import ExecutionFailed
from computer_linker.providers.child import Child, Spec
from computer_linker.providers.images import Fit, encode, to_image
from computer_linker.system import os

_TAKES_S = 20.0


class Video:
    """One WebM file being encoded. Blocking: used from a worker thread, one call at a time."""

    def __init__(self, ffmpeg: str, path: Path, first: Pixmap, fps: float, max_bytes: int, max_width: int) -> None:
        self._path = path
        self.size = (first.width, first.height)
        reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        try:
            self._child = Child(
                Spec(_argv(ffmpeg, path, first, fps, max_bytes, max_width), "/", _environment(), stdin=reader)
            )
        except BaseException:
            os.close(self._writer)
            raise
        finally:
            os.close(reader)

    def add(self, frame: Pixmap, times: int) -> None:
        """Add a frame `times` times. Raises ExecutionFailed when ffmpeg stopped reading."""
        rows = frame.data
        if frame.stride != frame.width * 4:
            size = frame.width * 4
            rows = b"".join(frame.data[y * frame.stride : y * frame.stride + size] for y in range(frame.height))
        for _ in range(times):
            self._write(memoryview(rows))

    def finish(self) -> bytes:
        """Wait for ffmpeg's end and return the file."""
        os.close(self._writer)
        self._writer = -1
        code, err = self._child.finish()
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            content = b""
        self.drop()
        if not content:
            raise ExecutionFailed(f"ffmpeg made no video (it ended with {code}): {err[-200:].decode(errors='replace')}")
        return content

    def drop(self) -> None:
        """Kill ffmpeg and remove its files; safe to call twice."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
        self._child.close()
        self._path.unlink(missing_ok=True)

    def _write(self, rest: memoryview) -> None:
        deadline = time.monotonic() + _TAKES_S
        while rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([], [self._writer], [], left)[1]:
                self._child.kill()
                raise ExecutionFailed("ffmpeg takes no more frames.")
            try:
                rest = rest[os.write(self._writer, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise ExecutionFailed("ffmpeg ended early.") from None


def _argv(ffmpeg: str, path: Path, first: Pixmap, fps: float, max_bytes: int, max_width: int) -> list[str]:
    # Both sides even, as the codec wants; never larger than it was.
    scale = f"scale=trunc(min({max_width}\\,iw)/2)*2:-2"
    return [
        *(ffmpeg, "-nostdin", "-hide_banner", "-loglevel", "error", "-y"),
        *("-f", "rawvideo", "-pix_fmt", "bgr0", "-video_size", f"{first.width}x{first.height}"),
        *("-framerate", f"{fps:g}", "-i", "pipe:0", "-an", "-vf", scale, "-pix_fmt", "yuv420p"),
        *("-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1500k", "-threads", "2"),
        *("-fs", str(max_bytes), "-f", "webm", str(path)),
    ]


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


# A contact sheet: frames spread evenly over a recording, in one image.

MAX_FRAMES = 24
_FRAME = Fit(1280, 1280, 400_000)
_COLUMNS, _CELL, _GAP, _CAPTION = 4, 320, 12, 18


@dataclass(frozen=True, slots=True)
class Frame:
    """One stored frame, and its time."""

    at_s: float
    data: bytes
    """A JPEG."""


class Sheet:
    """Stores at most 24 frames: when full, every second one is dropped and the interval doubles. Blocking."""

    def __init__(self, every_s: float) -> None:
        self.frames: list[Frame] = []
        self._every_s = every_s

    def add(self, frame: Pixmap, at_s: float, *, is_last: bool = False) -> None:
        """Add a frame, if one is due."""
        if not is_last and self.frames and at_s - self.frames[-1].at_s < self._every_s:
            return
        if is_last and self.frames and self.frames[-1].at_s == at_s:
            return
        self.frames.append(Frame(at_s, encode(frame, "jpeg", _FRAME).data))
        if len(self.frames) > MAX_FRAMES:
            self.frames = self.frames[::2]
            self._every_s *= 2

    def picture(self) -> bytes:
        """All frames in rows, each labelled with its time, as a PNG."""
        from PIL import Image, ImageDraw

        pictures = [Image.open(io.BytesIO(frame.data)) for frame in self.frames]
        for one in pictures:
            one.thumbnail((_CELL, _CELL))
        columns = min(_COLUMNS, len(pictures))
        rows = -(-len(pictures) // columns)
        height = max(one.height for one in pictures) + _CAPTION
        size = (columns * (_CELL + _GAP) + _GAP, rows * (height + _GAP) + _GAP)
        sheet = Image.new("RGB", size, "#f4f4f2")
        pen = ImageDraw.Draw(sheet)
        for number, (frame, one) in enumerate(zip(self.frames, pictures, strict=True)):
            x, y = _GAP + number % columns * (_CELL + _GAP), _GAP + number // columns * (height + _GAP)
            sheet.paste(one, (x, y))
            pen.text((x, y + one.height + 3), f"{frame.at_s:.1f} s", fill="#444444")
        return _png(sheet)


def needs_pillow() -> None:
    """Raise ProviderUnavailable, with the remedy, where Pillow is missing."""
    from computer_linker.model.geometry import Rect

    to_image(Pixmap(1, 1, 4, b"\0\0\0\0", Rect(x=0, y=0, width=1, height=1)))


def _png(image: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
