"""Running recordings: one per scope and caller, bounded in time and size, ended with the service."""

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import anyio
from anyio import to_thread

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.store import MAX_BYTES, Owner
from computer_linker.computer.base import Computer
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import Conflict, LimitExceeded, LinkError, NotFound
from computer_linker.model.artifact import Artifact
from computer_linker.model.geometry import Rect
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import is_of, leaves_room
from computer_linker.policy.writers import find_program, writers_of
from computer_linker.providers.recording.video import Sheet, Video, needs_pillow
from computer_linker.providers.shots import Shot, shoot
from computer_linker.services import Services

log = logging.getLogger(__name__)
MAX_RECORDINGS = 2
_MAX_REPEAT = 50
Key = tuple[str, str]
Ending = Literal["asked", "time", "size", "failed", "service"]


@dataclass(frozen=True, slots=True)
class Order:
    """What to record, for whom, and how much at most."""

    owner: Owner
    area: Rect
    excluded: Sequence[str]
    fps: float
    max_s: float
    max_width: int
    is_allowed: Callable[[], bool]
    """Checked before each frame: the owner may revoke the right meanwhile."""


@dataclass(slots=True)
class Recording:
    """One recording: its frames so far, and how it ended."""

    id: str
    order: Order
    began: float
    method: Literal["video", "frames"]
    frames: int = 0
    hidden: int = 0
    all_asked: bool = True
    lasted_s: float = 0.0
    ending: Ending | None = None
    problem: str = ""
    kept: list[Artifact] = field(default_factory=list)
    sheet_png: bytes = b""
    first: anyio.Event = field(default_factory=anyio.Event)
    asked: anyio.Event = field(default_factory=anyio.Event)
    done: anyio.Event = field(default_factory=anyio.Event)


class Recordings:
    """Starts recordings and looks them up."""

    def __init__(
        self, computer: Computer, broker: ArtifactBroker, folder: Path, find: Callable[[str], str | None] = find_program
    ) -> None:
        self._computer = computer
        self._broker = broker
        self._folder = folder
        self._find = find
        self._all: dict[Key, Recording] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        shutil.rmtree(folder, ignore_errors=True)

    @classmethod
    def open(cls, services: Services) -> Self:
        def find(name: str) -> str | None:
            return find_program(name, writers=writers_of(services.config.scopes))

        return cls(services.use(Computer), services.use(ArtifactBroker), services.home / "recordings", find)

    def is_busy(self) -> bool:
        return bool(self._tasks)

    def is_running(self, key: Key) -> bool | None:
        """Whether this caller's recording still runs; None where there is none to stop."""
        there = self._all.get(key)
        return None if there is None else there.ending is None

    async def start(self, key: Key, order: Order) -> Recording:
        """Start a recording. Returns once the first frame was captured, so that failures are reported at once."""
        there = self._all.get(key)
        if there is not None and there.ending is None:
            raise Conflict("A recording is running already; stop it first.")
        running = [whose for (_, whose), made in self._all.items() if made.ending is None]
        if len(self._tasks) >= MAX_RECORDINGS or not leaves_room(key[1], running, MAX_RECORDINGS):
            raise LimitExceeded(f"{len(running)} recordings run already.", running=len(running))
        needs_pillow()
        ffmpeg = self._find("ffmpeg")
        made = Recording(new_handle("rec"), order, time.monotonic(), "frames" if ffmpeg is None else "video")
        self._all[key] = made
        task = asyncio.create_task(self._recorded(made, ffmpeg))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await made.first.wait()
        if made.ending == "failed":
            del self._all[key]
            raise NotFound(f"Nothing could be recorded: {made.problem}")
        return made

    async def stop(self, key: Key) -> Recording:
        """Stop this caller's recording, or return the one that ended by itself."""
        made = self._all.pop(key, None)
        if made is None:
            raise NotFound("No recording of yours is running in this scope.")
        made.asked.set()
        await made.done.wait()
        return made

    async def end_of(self, principal: str | None) -> int:
        """Stop the recordings of one caller, or of all, keeping their frames; returns how many ran."""
        theirs = [key for key, made in self._all.items() if is_of(key[1], principal) and made.ending is None]
        for key in theirs:
            await self.stop(key)
        return len(theirs)

    async def aclose(self) -> None:
        """Stop all recordings, keeping their frames."""
        for made in self._all.values():
            made.ending = made.ending or "service"
            made.asked.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=20)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    async def _recorded(self, made: Recording, ffmpeg: str | None) -> None:
        """The task of one recording. Catches its failures."""
        outputs = _Outputs(made, ffmpeg, self._folder / f"{made.id}.webm")
        try:
            await self._filmed(made, outputs)
            await self._store_artifacts(made, outputs)
        except LinkError as error:
            made.ending, made.problem = "failed", error.message
        except Exception:
            log.exception("recording %s failed", made.id)
            made.ending, made.problem = "failed", "the service's log has the reason"
        finally:
            made.ending = made.ending or "asked"
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(outputs.drop)
            made.first.set()
            made.done.set()

    async def _filmed(self, made: Recording, outputs: "_Outputs") -> None:
        order = made.order
        while not made.asked.is_set():
            if not order.is_allowed():
                made.problem = "the owner changed what this scope allows"
                return
            shot = await shoot(self._computer, order.area, cursor=True, excluded=order.excluded)
            made.lasted_s = min(time.monotonic() - made.began, order.max_s)
            made.hidden, made.all_asked = max(made.hidden, shot.hidden), made.all_asked and shot.all_asked
            if not await to_thread.run_sync(outputs.add, shot):
                made.ending = "size"
                return
            made.first.set()
            if time.monotonic() - made.began >= order.max_s:
                made.ending = "time"
                return
            due = made.began + made.frames / order.fps
            with anyio.move_on_after(max(0.0, min(due, made.began + order.max_s) - time.monotonic())):
                await made.asked.wait()

    async def _store_artifacts(self, made: Recording, outputs: "_Outputs") -> None:
        video, made.sheet_png = await to_thread.run_sync(outputs.finish)
        title = f"screen, {made.lasted_s:.1f} s"
        if video is not None:
            made.kept.append(await self._broker.keep(video, "video_recording", title, made.order.owner))
        made.kept.append(
            await self._broker.keep(made.sheet_png, "screenshot", f"contact sheet of {title}", made.order.owner)
        )
        for frame in outputs.sheet.frames if video is None else ():
            made.kept.append(
                await self._broker.keep(frame.data, "screenshot", f"screen at {frame.at_s:.1f} s", made.order.owner)
            )


class _Outputs:
    """The outputs of one recording. Blocking."""

    def __init__(self, made: Recording, ffmpeg: str | None, path: Path) -> None:
        self._made = made
        self._ffmpeg = ffmpeg
        self._path = path
        self._video: Video | None = None
        self._last: Pixmap | None = None
        self.sheet = Sheet(max(0.25, 1 / made.order.fps))

    def add(self, shot: Shot) -> bool:
        """Add a frame for its time on the screen; False once the size limit is reached or the screen's size changed."""
        made, frame = self._made, shot.pixmap
        if self._ffmpeg is not None and self._video is None:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            order = made.order
            self._video = Video(self._ffmpeg, self._path, frame, order.fps, MAX_BYTES // 2, order.max_width)
        if self._last is not None and (self._last.width, self._last.height) != (frame.width, frame.height):
            return False
        due = int(made.lasted_s * made.order.fps) + 1 - made.frames
        times = max(1, min(due, _MAX_REPEAT))
        if self._video is not None:
            self._video.add(frame, times)
        made.frames += times
        self.sheet.add(frame, made.lasted_s)
        self._last = frame
        return self._has_room()

    def finish(self) -> tuple[bytes | None, bytes]:
        """The video, where there is one, and the contact sheet."""
        if self._last is not None:
            self.sheet.add(self._last, self._made.lasted_s, is_last=True)
        video = self._video.finish() if self._video is not None else None
        return video, self.sheet.picture()

    def drop(self) -> None:
        if self._video is not None:
            self._video.drop()

    def _has_room(self) -> bool:
        return not self._path.exists() or self._path.stat().st_size < MAX_BYTES // 2 - 1_000_000
