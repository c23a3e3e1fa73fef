"""The harness window as a test sees it: a process, and the events that reached it."""

import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.desktop import Desktop

_PROGRAM = Path(__file__).parent.parent / "fixtures" / "apps" / "harness_window.py"


@dataclass
class Harness:
    """One harness window. Reading waits for an event, never for a time."""

    process: "subprocess.Popen[bytes]"
    window: str = ""
    seen: list[dict[str, Any]] = field(default_factory=list)
    _rest: bytes = b""

    @classmethod
    def open(
        cls, desktop: Desktop, title: str = "Harness", *, at: tuple[int, int] = (100, 100),
        size: tuple[int, int] = (400, 300), colour: int = 0x336699,
    ) -> "Harness":  # fmt: skip
        """Start the window and wait until it is drawn."""
        numbers = [str(value) for value in (*at, *size, colour)]
        process = desktop.launch(sys.executable, str(_PROGRAM), title, *numbers, stdout=subprocess.PIPE)
        harness = cls(process)
        harness.window = harness.next("ready")["window"]
        harness.next("expose")
        return harness

    def next(self, kind: str, timeout: float = 10.0, **facts: Any) -> dict[str, Any]:
        """The next event of this kind with these facts; those before it are kept in `seen`."""
        deadline = time.monotonic() + timeout
        while True:
            event = self._read(deadline)
            if event is None:
                raise AssertionError(f"no {kind} {facts} reached the window; it saw {self.seen[-20:]}")
            self.seen.append(event)
            if event["event"] == kind and facts.items() <= event.items():
                return event

    def take(self, kind: str, count: int, timeout: float = 10.0) -> list[dict[str, Any]]:
        """The next `count` events of a kind."""
        return [self.next(kind, timeout) for _ in range(count)]

    def quiet(self, timeout: float = 0.3) -> list[dict[str, Any]]:
        """What arrives within a short time: to prove that something did not."""
        found, deadline = [], time.monotonic() + timeout
        while (event := self._read(deadline)) is not None:
            found.append(event)
        self.seen.extend(found)
        return found

    def _read(self, deadline: float) -> dict[str, Any] | None:
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        while b"\n" not in self._rest:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(fd, 65536) if ready else b""
            if not chunk:
                return None
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        event: dict[str, Any] = json.loads(line)
        return event
