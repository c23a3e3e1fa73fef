"""Windows, applications, clipboard, notices and facts of a simulated desktop."""

import builtins
from collections.abc import AsyncIterator, Sequence

from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.facets.facts import Environment, InputSeen
from computer_linker.computer.facets.notifications import Notification
from computer_linker.computer.facets.processes import Process
from computer_linker.computer.facets.windows import App
from computer_linker.computer.simulated.world import World
from computer_linker.errors import LimitExceeded, NotFound
from computer_linker.model.geometry import Point, Rect, Window


class SimulatedWindows:
    """Windows of a World."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def list(self) -> list[Window]:
        return [one.described(is_focused=one.id == self._world.focused_id) for one in self._world.windows]

    async def stack(self) -> builtins.list[Window]:
        return await self.list()

    async def focused(self) -> Window | None:
        return next((window for window in await self.list() if window.is_focused), None)

    async def at(self, point: Point) -> Window | None:
        found = self._world.at(point)
        return None if found is None else found.described(is_focused=found.id == self._world.focused_id)

    async def focus(self, window_id: str) -> Window:
        window = self._world.find(window_id)
        self._world.raise_to_top(window)
        return window.described(is_focused=True)

    async def place(self, window_id: str, bounds: Rect) -> Window:
        window = self._world.find(window_id)
        before, window.bounds = window.bounds, bounds
        self._world.changed(before, bounds)
        return window.described(is_focused=window.id == self._world.focused_id)

    async def close(self, window_id: str) -> bool:
        window = self._world.find(window_id)
        if window.keeps_open:
            return False
        self._world.remove(window)
        return True


class SimulatedApps:
    """Apps of a World: opening one opens a window."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def list(self, *, running_only: bool = False) -> list[App]:
        apps = [self._app(app_id) for app_id in self._world.installed]
        return [app for app in apps if app.pids or not running_only]

    async def open(self, app: str, arguments: Sequence[str] = ()) -> App:
        app_id = self._id(app)
        title = " ".join([self._world.installed[app_id], *arguments])
        self._world.open(app_id, title)
        return self._app(app_id)

    async def close(self, app: str) -> bool:
        app_id = self._id(app)
        mine = [one for one in self._world.windows if one.app == app_id]
        for window in mine:
            if not window.keeps_open:
                self._world.remove(window)
        return not any(window.keeps_open for window in mine)

    async def focus(self, app: str) -> App:
        app_id = self._id(app)
        for window in self._world.windows:
            if window.app == app_id:
                self._world.raise_to_top(window)
                return self._app(app_id)
        raise NotFound("The application has no window.", app=app_id)

    def _id(self, app: str) -> str:
        for app_id, name in self._world.installed.items():
            if app.lower() in (app_id.lower(), name.lower()):
                return app_id
        raise NotFound("No installed application has this id or name.", app=app[:80])

    def _app(self, app_id: str) -> App:
        mine = [one for one in self._world.windows if one.app == app_id]
        return App(
            id=app_id,
            name=self._world.installed[app_id],
            pids=[one.pid for one in mine],
            windows=[one.id for one in mine],
        )


class SimulatedClipboard:
    """Clipboard of a World."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def types(self) -> list[str]:
        return list(self._world.clip.forms)

    async def read(self, media_type: str = "text/plain", *, max_bytes: int = 32_000_000) -> bytes | None:
        raw = self._world.clip.forms.get(media_type)
        if raw is not None and len(raw) > max_bytes:
            raise LimitExceeded(f"The clipboard holds more than {max_bytes} bytes.", maxBytes=max_bytes)
        return raw

    async def write(self, clip: Clip) -> None:
        self._world.clip = clip

    async def snapshot(self, *, max_bytes: int = 32_000_000) -> Clip:
        if sum(len(raw) for raw in self._world.clip.forms.values()) > max_bytes:
            raise LimitExceeded(f"The clipboard holds more than {max_bytes} bytes.", maxBytes=max_bytes)
        return self._world.clip

    async def taken(self, timeout_s: float) -> bool | None:
        return self._world.focused() is not None


class SimulatedNotifications:
    """Notifications of a World."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def recent(self) -> list[Notification]:
        return list(self._world.notices)

    async def subscribe(self) -> AsyncIterator[Notification]:
        with self._world.listening() as stream:
            async for event in stream:
                if isinstance(event, Notification):
                    yield event


class SimulatedFacts:
    """Facts of a World."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def environment(self) -> Environment:
        return Environment(
            system="simulated", release="1", architecture="none", session="simulated", desktop="simulated", locale="C"
        )

    async def processes(self) -> list[Process]:
        found = {one.pid: one for one in self._world.windows}
        return [
            Process(
                pid=pid, parent=1, name=window.app.lower(), started_at="2026-01-01T00:00:00.000Z", is_own=True,
                memory_bytes=0, cpu_seconds=0.0,
            )
            for pid, window in sorted(found.items())
        ]  # fmt: skip

    async def lock_screen(self) -> None:
        self._world.is_locked = True

    async def input(self) -> AsyncIterator[InputSeen]:
        with self._world.listening() as stream:
            async for event in stream:
                if isinstance(event, InputSeen):
                    yield event
