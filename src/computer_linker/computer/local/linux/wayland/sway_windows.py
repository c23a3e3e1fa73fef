"""Windows on sway, by its IPC socket: the one compositor family that reports window positions."""

import builtins
import json
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
from anyio import to_thread

from computer_linker.errors import ExecutionFailed, InvalidRequest, NotFound, ProviderUnavailable
from computer_linker.model.geometry import Point, Rect, Window, WindowState, safe_title
from computer_linker.system.linux import process_name

_MAGIC = b"i3-ipc"
_COMMAND, _TREE = 0, 4
_MAX_REPLY = 20_000_000
_WAIT_S = 2.0
_LOOK_S = 0.02


class SwayWindows:
    """Windows by sway's IPC."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._path = environ["SWAYSOCK"]

    async def list(self) -> list[Window]:
        """All windows: the focused first, then floating before tiled."""
        return _windows(await self._ask(_TREE))

    async def stack(self) -> builtins.list[Window]:
        """The same list: sway does not report pop-ups."""
        return await self.list()

    async def focused(self) -> Window | None:
        """The focused window."""
        return next((window for window in await self.list() if window.is_focused), None)

    async def at(self, point: Point) -> Window | None:
        """The topmost window at a point."""
        return next((one for one in await self.list() if one.is_visible and one.frame.contains(point)), None)

    async def focus(self, window_id: str) -> Window:
        """Focus a window, changing the workspace where needed."""
        await self._find(window_id)
        await self._send(f"[con_id={window_id}] focus")
        window = await self._settled(window_id, lambda one: one.is_focused)
        if not window.is_focused:
            raise ExecutionFailed("The compositor did not give the window the focus.", windowId=window_id)
        return window

    async def place(self, window_id: str, bounds: Rect) -> Window:
        """Float the window and place it; sway tiles windows otherwise."""
        await self._find(window_id)
        await self._send(
            f"[con_id={window_id}] floating enable, border none, resize set {bounds.width} {bounds.height}, "
            f"move absolute position {bounds.x} {bounds.y}"
        )
        return await self._settled(window_id, lambda one: one.bounds == bounds)

    async def close(self, window_id: str) -> bool:
        """Ask the window to close."""
        await self._find(window_id)
        await self._send(f"[con_id={window_id}] kill")
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline:
            if all(window.id != window_id for window in await self.list()):
                return True
            await anyio.sleep(_LOOK_S)
        return False

    async def _find(self, window_id: str) -> Window:
        if not window_id.isascii() or not window_id.isdigit():
            raise InvalidRequest("A window id is a number; window.list gives them.")
        for window in await self.list():
            if window.id == window_id:
                return window
        raise NotFound("There is no such window.", windowId=window_id[:64])

    async def _settled(self, window_id: str, done: Any) -> Window:
        deadline = time.monotonic() + _WAIT_S
        window = await self._find(window_id)
        while not done(window) and time.monotonic() < deadline:
            await anyio.sleep(_LOOK_S)
            window = await self._find(window_id)
        return window

    async def _send(self, command: str) -> None:
        answers = await self._ask(_COMMAND, command)
        if not all(answer.get("success") for answer in answers):
            raise ExecutionFailed("The compositor refused: " + str(answers[0].get("error", ""))[:200])

    async def _ask(self, kind: int, payload: str = "") -> Any:
        return await to_thread.run_sync(_asked, self._path, kind, payload, abandon_on_cancel=True)


def _asked(path: str, kind: int, payload: str) -> Any:
    raw = payload.encode()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_WAIT_S)
            connection.connect(path)
            connection.sendall(_MAGIC + struct.pack("=II", len(raw), kind) + raw)
            size, _ = struct.unpack("=II", _exactly(connection, 14)[6:])
            if size > _MAX_REPLY:
                raise ProviderUnavailable("The compositor's answer is too large.")
            return json.loads(_exactly(connection, size))
    except (OSError, ValueError) as error:
        raise ProviderUnavailable("The compositor's socket does not answer. Is the desktop still running?") from error


def _exactly(connection: socket.socket, size: int) -> bytes:
    pieces = b""
    while len(pieces) < size:
        piece = connection.recv(size - len(pieces))
        if not piece:
            raise OSError("closed")
        pieces += piece
    return pieces


def _windows(tree: Any) -> list[Window]:
    found = list(_leaves(tree, depth=0))
    # Sway reports no stacking order: the focused window is on top, floating ones lie above tiled ones.
    found.sort(key=lambda pair: (not pair[0].is_focused, not pair[1]))
    return [window for window, _ in found]


def _leaves(node: Any, *, depth: int, floating: bool = False) -> Iterator[tuple[Window, bool]]:
    if depth > 64:
        return
    if node.get("pid") and node.get("type") in ("con", "floating_con"):
        yield _window(node), floating or node["type"] == "floating_con"
        return
    for child in node.get("nodes", []):
        yield from _leaves(child, depth=depth + 1, floating=floating)
    for child in node.get("floating_nodes", []):
        yield from _leaves(child, depth=depth + 1, floating=True)


def _window(node: Any) -> Window:
    place, inside = node["rect"], node["window_rect"]
    frame = Rect(x=place["x"], y=place["y"] - node["deco_rect"]["height"], width=place["width"],
                 height=place["height"] + node["deco_rect"]["height"])  # fmt: skip
    states: list[WindowState] = ["fullscreen"] if node.get("fullscreen_mode") else []
    app = node.get("app_id") or (node.get("window_properties") or {}).get("class") or ""
    return Window(
        id=str(node["id"]),
        title=safe_title(node.get("name") or ""),
        app=safe_title(app),
        pid=node["pid"],
        process=process_name(node["pid"]),
        bounds=Rect(
            x=place["x"] + inside["x"], y=place["y"] + inside["y"], width=inside["width"], height=inside["height"]
        ),
        frame=frame,
        is_focused=bool(node.get("focused")),
        is_visible=bool(node.get("visible")),
        states=states,
    )
