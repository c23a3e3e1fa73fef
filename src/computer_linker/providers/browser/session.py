"""One browser: its process inside the sandbox, its commands, and the folder it may write."""

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from computer_linker.computer.facets.accessibility import Application, ElementId
from computer_linker.computer.facets.processes import Child, Ended
from computer_linker.errors import (
    Conflict,
    ElementNotFound,
    ExecutionFailed,
    LimitExceeded,
    LinkError,
    NotFound,
    ProcessNotFound,
    ProviderUnavailable,
    TimedOut,
)
from computer_linker.model.ids import new_handle
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.model.scope import Scope
from computer_linker.policy.visible_text import escaped
from computer_linker.providers.browser.secret_field import SHOWN
from computer_linker.providers.held import held
from computer_linker.providers.processes.prepare import Prepared
from computer_linker.providers.processes.runner import stopped
from computer_linker.providers.processes.streams import Feed, HeadTail, Pump, close_streams
from computer_linker.system import os

if TYPE_CHECKING:
    from computer_linker.providers.network.gate import Gate

COMMAND_S = 30.0
_SLACK_S = 5.0
_MAX_LINE = 40 << 20
_GRACE_S = 2.0
Command = Sequence[str]


class Session:
    """A browser process that waits at its start gate until `go`. Commands run one at a time."""

    def __init__(self, session_id: str, child: Child, prepared: Prepared, folder: Path, gate: "Gate | None") -> None:
        self.id = session_id
        self.boundary = prepared.boundary
        self.warnings = prepared.warnings
        self.folder = folder
        self.gate = gate
        self.app = Application(
            id=f"browser:{session_id}",
            name="browser",
            pid=None,
            toolkit="agent-browser",
            toolkit_version="",
            root=ElementId(f"browser:{session_id}", ""),
        )
        self.scope: Scope | None = None
        """The scope as it was when the browser was started."""
        self.leaves: list[Path] = [folder]
        """Folders to remove at its end."""
        self.running: dict[str, asyncio.TimerHandle] = {}
        """Running captures (trace, har, record), with the timer that ends each."""
        self._shows_secret: Callable[[str], bool] | None = None
        self.over: set[str] = set()
        """Captures that their timer has ended; their file is not collected yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.busy = anyio.Lock()
        """Held around steps that belong together, such as a snapshot and the act that follows it."""
        self._child = child
        self._plan = prepared.plan
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._partial = bytearray()
        self._stderr = HeadTail(8192)
        self._has_ended = anyio.Event()
        self._feed = Feed(child.stdin) if child.stdin is not None else None
        self._pumps = [Pump(child.stdout, self._take)]
        if child.stderr is not None:
            self._pumps.append(Pump(child.stderr, self._stderr.feed))

    @property
    def is_running(self) -> bool:
        return not self._has_ended.is_set()

    def is_for(self, scope: Scope) -> bool:
        """True while the scope grants what it granted when the browser was started."""
        was = self.scope
        return was is not None and (was.roots, was.policy, was.granted) == (scope.roots, scope.policy, scope.granted)

    def go(self) -> None:
        """Let it start."""
        self._child.when_ended(self._ended)
        self._child.go()

    def kill(self) -> None:
        """Kill its process tree."""
        self._child.kill()

    async def ask(self, *commands: Command, timeout_s: float = COMMAND_S) -> list[dict[str, Any]]:
        """Run commands in order, up to the first failure, and return the data of each.

        Raises:
            ProcessNotFound: the browser has ended.
        """
        reply = await self._reply(list(map(list, commands)), timeout_s)
        if reply.get("late"):
            raise TimedOut(f"The browser did not answer within {timeout_s:g} seconds.")
        if reply.get("tooLong"):
            raise LimitExceeded("The page's answer is too large.")
        out = reply.get("out")
        return results_of(out if type(out) is str else "", len(commands))

    async def _reply(self, commands: list[list[str]], timeout_s: float) -> dict[str, Any]:
        if not self.is_running or self._feed is None:
            raise ProcessNotFound("The browser has ended. Open the page again with browser.open.")
        self._count += 1
        number = self._count
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        argv = ["--json", "batch", "--bail", "--omit-command"]
        request = {"id": number, "argv": argv, "stdin": json.dumps(commands), "timeout": timeout_s}
        self._feed.write(json.dumps(request).encode() + b"\n")
        try:
            with anyio.fail_after(timeout_s + _SLACK_S):
                return await waiting
        except TimeoutError:
            # It does not even report a timeout any more, so it is unusable.
            self.kill()
            raise TimedOut("The browser stopped answering and was ended.") from None
        finally:
            self._waiting.pop(number, None)

    def end_after(self, name: str, command: Command, seconds: float) -> None:
        """Record that something runs, and end it after this time."""

        def ring() -> None:
            task = asyncio.create_task(self._end(name, command))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self.running[name] = asyncio.get_running_loop().call_later(seconds, ring)

    async def _end(self, name: str, command: Command) -> None:
        async with self.busy:
            if name in self.running and self.is_running:
                self.over.add(name)
                # The caller that stops it learns the outcome when it collects the file.
                with suppress(LinkError):
                    await self.ask(command)

    def place(self, name: str) -> str:
        """The path inside the sandbox at which the browser may write a file of this name."""
        return str(self.folder / "out" / name)

    async def collect(self, name: str, limit: int) -> bytes:
        """Read and remove a file the browser wrote. Anything but a regular file is refused."""
        content = await anyio.to_thread.run_sync(self._collected, name, limit)
        await self.refuse_shown()
        return content

    async def refuse_shown(self) -> None:
        """Raise Conflict while the page shows a secret that was put into it, or a field that holds a part of one."""
        if self._shows_secret is None:
            return
        (seen,) = await self.ask(("eval", SHOWN))
        shown = str(seen.get("result"))
        if not shown.startswith("hidden ") or self._shows_secret(shown):
            raise Conflict("The page shows a secret that was put into it, so no picture is taken of it.")

    @property
    def holds_secret(self) -> bool:
        """True once a secret was put into one of its pages."""
        return self._shows_secret is not None

    def hide(self, shows_secret: Callable[[str], bool]) -> None:
        """Keep no file of a page whose visible text has a secret, by this test."""
        self._shows_secret = shows_secret

    def _collected(self, name: str, limit: int) -> bytes:
        try:
            with held(RootedPath(str(self.folder / "out"), (name,), PathRules())) as found:
                if found.is_folder or found.path.parts != (name,):
                    raise ExecutionFailed("The browser left something else than a file.")
                with open(found.fd, "rb", closefd=False) as file:
                    content = file.read(limit + 1)
        except NotFound as error:
            raise ExecutionFailed("The browser did not write the file it was asked for.") from error
        finally:
            # A folder in its place stays, and is removed with the browser's own folder.
            with suppress(OSError):
                (self.folder / "out" / name).unlink()
        if len(content) > limit:
            raise LimitExceeded(f"What the browser made is larger than {limit} bytes.", limitBytes=limit)
        return content

    async def copy_in(self, contents: Sequence[tuple[str, bytes]]) -> list[str]:
        """Copy files to where the browser can read them while it runs; returns their paths."""
        return await anyio.to_thread.run_sync(self._copied_in, contents)

    def _copied_in(self, contents: Sequence[tuple[str, bytes]]) -> list[str]:
        """Write the copies without following links: the browser may create links in this folder."""
        places: list[str] = []
        for name, content in contents:
            place = self.folder / new_handle("lent")
            place.mkdir(mode=0o700)
            folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with open(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
                    file.write(content)
            finally:
                os.close(folder)
            places.append(str(place / name))
        return places

    async def aclose(self) -> None:
        """Stop it, kill it after a grace period, and remove its files."""
        for clock in self.running.values():
            clock.cancel()
        with anyio.CancelScope(shield=True):
            if self._feed is not None:
                self._feed.finish()
            if self.is_running:
                with anyio.move_on_after(_GRACE_S):
                    await self._has_ended.wait()
            if self.is_running:
                await stopped(self._child, 0)
            self.release()
            if self.gate is not None:
                await self.gate.aclose()
            for folder in self.leaves:
                await anyio.to_thread.run_sync(shutil.rmtree, folder, True)

    def release(self) -> None:
        """Close its pipes and release the sandbox's resources."""
        self._child.kill()
        close_streams(self._pumps, self._feed, self._child.stdin)
        self._plan.release()

    def _take(self, data: memoryview) -> None:
        self._partial += data
        *lines, rest = self._partial.split(b"\n")
        self._partial = bytearray(rest)
        if len(rest) > _MAX_LINE:
            self.kill()
        for line in lines:
            self._line(bytes(line))

    def _line(self, line: bytes) -> None:
        try:
            reply = json.loads(line)
        except ValueError:
            return
        number = reply.get("id") if type(reply) is dict else None
        waiting = self._waiting.get(number) if type(number) is int else None
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def _ended(self, _ended: Ended) -> None:
        self._has_ended.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ProcessNotFound("The browser ended. Open the page again with browser.open."))


# Parses agent-browser's replies as untrusted input: it runs beside untrusted pages.

INSTALL = (
    "Install agent-browser 0.41 or later (npm install -g agent-browser@latest) and Chromium (apt-get install chromium)."
)
_MAX_ERROR = 300
_NEWEST_OPTION = "--omit-command"
"""The option of every batch that only agent-browser 0.41 and later support."""
_GONE = re.compile(r"element not found|could not locate|unknown ref|no element|not attached|stale", re.IGNORECASE)


def results_of(out: str, wanted: int) -> list[dict[str, Any]]:
    """The data of each command of a batch. Raises the error of the first failed one.

    Raises:
        ExecutionFailed: a command failed, or the reply is unknown.
        ProviderUnavailable: the program is too old.
    """
    try:
        reply = json.loads(out)
    except ValueError:
        raise _not_understood() from None
    if type(reply) is dict and reply.get("success") is False:
        if _NEWEST_OPTION in str(reply.get("error")):
            # npm installs an old version where Node is older than the newest version requires.
            raise ProviderUnavailable(
                "The agent-browser that is installed is older than 0.41.", program="agent-browser", reason="too_old",
                remedy=INSTALL,
            )  # fmt: skip
        raise fault_of(reply.get("error"))
    if type(reply) is not list or not all(type(step) is dict for step in reply):
        raise _not_understood()
    results: list[dict[str, Any]] = []
    for step in reply:
        if step.get("success") is not True:
            raise fault_of(step.get("error"))
        data = step.get("result")
        results.append(data if type(data) is dict else {})
    if len(results) != wanted:
        raise _not_understood()
    return results


def fault_of(error: object) -> LinkError:
    """The error of an error text."""
    text = escaped(error if type(error) is str else "it gave no reason")[:_MAX_ERROR]
    low = text.lower()
    if _GONE.search(text):
        return ElementNotFound(f"The page has no such element now: {text}")
    if "dialog is blocking" in low:
        return Conflict("A dialog of the page is open and holds everything else up. Answer it with browser.dialog.")
    if "behind capture" in low:
        return TimedOut(
            "The machine was too busy to encode the video in time, so it was not kept. Record it once more."
        )
    if "timeout" in low or "timed out" in low:
        return TimedOut(f"The page did not get there in time: {text}")
    if "ffmpeg" in low:
        return ProviderUnavailable("Recording the page needs ffmpeg.", program="ffmpeg", remedy="Install ffmpeg.")
    return ExecutionFailed(f"The browser refused: {text}")


def text_in(data: dict[str, Any], name: str, limit: int = 4096) -> str:
    """A bounded text of a reply; empty where there is none."""
    value = data.get(name)
    return value[:limit] if type(value) is str else ""


def _not_understood() -> ExecutionFailed:
    return ExecutionFailed("agent-browser answered in a way that is not known here. Version 0.41 is known.")
