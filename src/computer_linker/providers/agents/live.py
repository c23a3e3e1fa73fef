"""A running turn: the agent's process, its output parsed into events, and its outcome."""

import asyncio
import re
import time
from collections.abc import Callable

import anyio

from computer_linker.computer.facets.processes import Child, Ended, SignalName
from computer_linker.providers.agents.program import Event, Parser, line_of, lines_of
from computer_linker.providers.agents.sessions import EventLog
from computer_linker.providers.processes.records import now
from computer_linker.providers.processes.runner import stopped
from computer_linker.providers.processes.streams import Feed, HeadTail, Pump, close_streams, drained

_MAX_LINE = 8 << 20
_THREAD_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{7,63}")
_GRACE_S = 3.0


class LiveTurn:
    """Reads the agent's events as they arrive. Created while its process waits at its start gate."""

    def __init__(self, child: Child, parser: Parser, log: EventLog, where: str, max_output: int) -> None:
        self.log = log
        self.final_message = ""
        self.errors: list[str] = []
        self.usage: dict[str, int] = {}
        self.is_failed = False
        self.is_understood = False
        self.did_something = False
        self.was_stopped = False
        self.timed_out = False
        self.stdout, self.stderr = HeadTail(max_output), HeadTail(max_output)
        self.on_thread: Callable[[str], None] | None = None
        self._child = child
        self._parser = parser
        self._where = where.rstrip("/") + "/"
        self._partial = bytearray()
        self._is_skipping = False
        self.is_running = True
        self.last_output = time.monotonic()
        self._changed = anyio.Event()
        self._pumps = [Pump(child.stdout, self._take)]
        if child.stderr is not None:
            self._pumps.append(Pump(child.stderr, self.stderr.feed))
        self._feed: Feed | None = None

    async def to_the_end(self, prompt: bytes, timeout_s: float) -> Ended:
        """Start it, send the prompt, and wait; at the timeout its process tree is stopped."""
        self._child.go()
        if self._child.stdin is not None:
            self._feed = Feed(self._child.stdin)
            self._feed.write(prompt)
            self._feed.finish()
        ended: Ended | None = None
        with anyio.move_on_after(timeout_s):
            ended = await self._child.wait()
        if ended is None:
            self.timed_out = True
            ended = await stopped(self._child, _GRACE_S)
        await drained(self._pumps)
        self._line(bytes(self._partial))
        return ended

    async def stop(self, grace_s: float, signal: SignalName = "term") -> None:
        """Stop its process tree: the signal first, SIGKILL after the grace period."""
        self.was_stopped = True
        await stopped(self._child, 0 if signal == "kill" else grace_s, signal)

    def close(self) -> None:
        """Kill what still runs, and close its pipes."""
        self._child.kill()
        close_streams(self._pumps, self._feed, self._child.stdin)
        self.log.close()
        self.is_running = False
        self.notify()

    async def changed(self, wait_s: float) -> None:
        """Return at the next event or the end, or after the time."""
        with anyio.move_on_after(wait_s):
            await self._changed.wait()

    @property
    def end(self) -> int:
        """The cursor after all events so far."""
        return self.log.end

    def printed(self, since: int, limit: int) -> bytes:
        """The events since a cursor as text, the last of it."""
        events = self.log.since(since, 2 * limit)[0]
        # An event without text is news too.
        return (lines_of(events).encode("utf-8", "replace") or b"\n" * len(events))[-limit:]

    def notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def _take(self, data: memoryview) -> None:
        self.stdout.feed(data)
        self._partial += data
        if b"\n" not in bytes(data) and len(self._partial) <= _MAX_LINE:
            return
        *lines, rest = bytes(self._partial).split(b"\n")
        self._partial = bytearray(rest if len(rest) <= _MAX_LINE else b"")
        for line in lines:
            if self._is_skipping:
                self._is_skipping = False
            else:
                self._line(line)
        if len(rest) > _MAX_LINE:
            self._is_skipping = True
            self._add({"type": "warning", "text": f"An event of more than {_MAX_LINE} bytes was left out."})

    def _line(self, line: bytes) -> None:
        if line.strip():
            for event in self._parser.events(line.decode("utf-8", errors="replace")):
                self._add(event)

    def _add(self, event: Event) -> None:
        event["at"] = now()
        for change in event.get("changes", []):
            change["path"] = change["path"].removeprefix(self._where)
        self._learn(event)
        self.log.add(event)
        self.last_output = time.monotonic()
        self.notify()

    def _learn(self, event: Event) -> None:
        self.is_understood = True
        match event["type"]:
            case "thread":
                # It becomes an argument when the session is continued, so it must not look like an option.
                if _THREAD_ID.fullmatch(event["threadId"]) and self.on_thread is not None:
                    self.on_thread(event["threadId"])
            case "message":
                self.final_message = event["text"]
            case "error":
                self.errors.append(event["text"])
            case "usage":
                self.usage = event["usage"]
            case "turn" if event["status"] == "failed":
                self.is_failed = True
                self.errors.append(event.get("text", ""))
            case "command" | "file_change" | "tool_call":
                self.did_something = True


def progress_line(log: EventLog, cursor: int) -> tuple[str, int]:
    """The newest displayable event since a cursor, and the cursor after it."""
    events, cursor, _ = log.since(cursor, 1 << 20)
    lines = [line for event in events if (line := line_of(event).strip())]
    return (lines[-1].splitlines()[0][:200] if lines else ""), cursor


def background(task: asyncio.Task[None], tasks: set[asyncio.Task[None]]) -> None:
    """Reference a task until it ends, so that it is not garbage-collected."""
    tasks.add(task)
    task.add_done_callback(tasks.discard)
