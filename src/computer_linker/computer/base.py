"""Computer: a machine with one attribute per facet, its capability manifest and convenience methods."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio

from computer_linker.computer.facets.processes import Child, CompletedCommand, Launch, Processes
from computer_linker.computer.manifest import FACETS, Absent, FacetName, FacetState, Manifest
from computer_linker.errors import ExecutionFailed, InvalidRequest
from computer_linker.model.scope import Scope

if TYPE_CHECKING:
    from computer_linker.computer.facets.accessibility import Accessibility
    from computer_linker.computer.facets.clipboard import Clipboard
    from computer_linker.computer.facets.facts import Facts
    from computer_linker.computer.facets.files import Files
    from computer_linker.computer.facets.keyboard import Keyboard, KeyEvent
    from computer_linker.computer.facets.notifications import Notifications
    from computer_linker.computer.facets.pointer import Button, Modifier, Pointer, PointerEvent
    from computer_linker.computer.facets.processes import CompletedCommand, Processes
    from computer_linker.computer.facets.screen import Screen
    from computer_linker.computer.facets.windows import Apps, Windows
    from computer_linker.computer.text_entry import Entered
    from computer_linker.model.geometry import Point


class Computer:
    """A machine as a set of facets. A facet that was not provided refuses every use with a reason."""

    files: "Files"
    processes: "Processes"
    facts: "Facts"
    screen: "Screen"
    pointer: "Pointer"
    keyboard: "Keyboard"
    windows: "Windows"
    apps: "Apps"
    clipboard: "Clipboard"
    accessibility: "Accessibility"
    notifications: "Notifications"

    def __init__(self) -> None:
        self._states: dict[str, FacetState] = {}
        self._at_close: list[Callable[[], Awaitable[None]]] = []
        self.scopes: Callable[[], Sequence[Scope]] = tuple
        """The configured scopes, for facets that must not run a program that lies where a scope can write."""

    def provide(self, facet: FacetName, part: Any, *, backend: str, is_proven: bool = True) -> None:
        """Set a facet and record which backend provides it."""
        setattr(self, facet, part)
        self._states[facet] = (
            part.state
            if isinstance(part, Absent)
            else FacetState(state="present", backend=backend, is_proven=is_proven)
        )

    def capabilities(self) -> Manifest:
        """What can be used now, what cannot, why, and the remedy. Makes no system call."""
        states: dict[str, FacetState] = {}
        for facet in FACETS:
            part = getattr(self, facet)
            if isinstance(part, Absent):
                states[facet] = part.state
            else:
                states[facet] = self._states.get(facet) or FacetState(state="present")
        return Manifest(facets=states)

    def __getattr__(self, name: str) -> Any:
        # Only reached for a facet that was never set.
        if name in FACETS:
            return Absent(name, f"This computer has no {name}.")
        raise AttributeError(name)

    async def click(
        self, at: "Point", button: "Button" = "left", count: int = 1, modifiers: Sequence["Modifier"] = ()
    ) -> None:
        """Click a desktop point."""
        await self.pointer.click(at, button=button, count=count, modifiers=modifiers)

    async def drag(self, start: "Point", end: "Point", button: "Button" = "left") -> None:
        """Drag from one desktop point to another."""
        await self.pointer.drag([start, end], button=button)

    async def scroll(self, at: "Point", dx: int = 0, dy: int = 0) -> None:
        """Turn the wheel at a desktop point; positive is right and down."""
        await self.pointer.scroll(at, dx=dx, dy=dy)

    async def point(self, event: "PointerEvent") -> None:
        """Do one act of the pointer, given as a value."""
        match event.action:
            case "move":
                await self.pointer.move(event.at)
            case "click":
                await self.click(event.at, event.button, event.count, event.modifiers)
            case "drag":
                path = [event.at, event.to or event.at]
                await self.pointer.drag(path, button=event.button, modifiers=event.modifiers)
            case "scroll":
                await self.pointer.scroll(event.at, dx=event.dx, dy=event.dy, modifiers=event.modifiers)

    async def key(self, event: "KeyEvent") -> None:
        """Do one act of the keyboard, given as a value."""
        if (event.key is None) == (event.text is None):
            raise InvalidRequest("A key event has either a key or text.")
        if event.text is not None:
            await self.keyboard.type_text(event.text)
        elif event.key is not None:
            await self.keyboard.press([*event.modifiers, event.key], count=event.count)

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
        limit: int = 1_000_000,
    ) -> "CompletedCommand":
        """Run one program, named by its absolute path, to its end. No policy is applied here: that is the dispatcher's."""

        given = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"} if env is None else env
        return await run_to_end(self.processes, argv, stdin=stdin, env=given, timeout_s=timeout_s, limit=limit)

    async def press(self, key: str, count: int = 1) -> None:
        """Press one key."""
        await self.keyboard.press([key], count=count)

    async def hotkey(self, *keys: str) -> None:
        """Press a chord."""
        await self.keyboard.press(keys)

    async def type_text(self, text: str) -> "Entered":
        """Enter text at the focus; returns the method used, `keys` or `paste`, and what reading it back showed."""
        from computer_linker.computer.text_entry import enter_and_read_back

        return await enter_and_read_back(self, text)

    async def clipboard_text(self) -> str | None:
        """The clipboard's text, where it has one."""
        raw = await self.clipboard.read("text/plain")
        return None if raw is None else raw.decode("utf-8", errors="replace")

    async def clipboard_set_text(self, text: str) -> None:
        """Put text on the clipboard."""
        from computer_linker.computer.facets.clipboard import text_clip

        await self.clipboard.write(text_clip(text))

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Register a resource that several facets share, to be closed after them."""
        self._at_close.append(close)

    async def aclose(self) -> None:
        """Release what the facets hold."""
        for facet in FACETS:
            part = self.__dict__.get(facet)
            close = None if isinstance(part, Absent) else getattr(part, "aclose", None)
            if close is not None:
                await close()
        for close in reversed(self._at_close):
            await close()


# Runs one program on a computer to its end, and returns what it printed.

_CHUNK = 65_536
_DRAIN_S = 0.25
"""How long to wait for the end of the output once the process has ended: an orphan may hold the pipe."""


async def run_to_end(
    processes: Processes, argv: Sequence[str], *, stdin: bytes, env: Mapping[str, str], timeout_s: float, limit: int
) -> CompletedCommand:
    """Start the program, feed it, and read both streams up to `limit` bytes each; killed when the time is over."""
    if not argv or not argv[0].startswith("/"):
        raise InvalidRequest("The program is named by its absolute path; nothing is looked up.")
    child = await processes.spawn(Launch(tuple(argv), dict(env), stdin="pipe" if stdin else "null"))
    out, err = bytearray(), bytearray()
    timed_out = False
    try:
        child.go()
        async with anyio.create_task_group() as group:
            group.start_soon(_read, child.stdout, out, limit)
            if child.stderr is not None:
                group.start_soon(_read, child.stderr, err, limit)
            if stdin and child.stdin is not None:
                group.start_soon(_write, child, stdin)
            with anyio.move_on_after(timeout_s) as waiting:
                ended = await child.wait()
            if waiting.cancelled_caught:
                timed_out = True
                child.kill()
                ended = await child.wait()
            group.cancel_scope.deadline = anyio.current_time() + _DRAIN_S
    finally:
        child.kill()
        for fd in (child.stdout, child.stderr, child.stdin):
            _closed(fd)
    if ended.reason is not None:
        raise ExecutionFailed(f"The program could not be started: {ended.reason}")
    return CompletedCommand(
        argv=list(argv),
        exit_code=ended.exit_code,
        signal=ended.signal,
        timed_out=timed_out,
        stdout=bytes(out[:limit]).decode("utf-8", "replace"),
        stderr=bytes(err[:limit]).decode("utf-8", "replace"),
        truncated=len(out) > limit or len(err) > limit,
    )


async def _read(fd: int, into: bytearray, limit: int) -> None:
    while True:
        await anyio.wait_readable(fd)
        try:
            piece = os.read(fd, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return
        if not piece:
            return
        # One byte more than the limit tells that there was more; the rest is read and dropped.
        into += piece[: max(0, limit + 1 - len(into))]


async def _write(child: Child, data: bytes) -> None:
    assert child.stdin is not None
    view = memoryview(data)
    try:
        while view:
            await anyio.wait_writable(child.stdin)
            try:
                view = view[os.write(child.stdin, view[:_CHUNK]) :]
            except BlockingIOError:
                continue
    except OSError:
        return
    finally:
        _closed(child.stdin)
        child.stdin = None


def _closed(fd: int | None) -> None:
    if fd is not None:
        try:
            os.close(fd)
        except OSError:
            return
