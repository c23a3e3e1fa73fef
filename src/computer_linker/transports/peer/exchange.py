"""One call that waits for its answer: what may come for it, and how much of it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from computer_linker.errors import LimitExceeded
from computer_linker.registry.context import Progress
from computer_linker.transports.peer.frames import MAX_BLOBS, Piece

_SMALLEST_PIECE = 4096
"""What a piece of an answer counts at least: many tiny ones would cost more memory than they carry."""
_REPORT_S = 0.05
"""Reports of progress that come faster are not passed on."""


@dataclass(slots=True)
class Exchange:
    """One call that waits for its answer."""

    answered: asyncio.Future[dict[str, Any]]
    report: Progress | None = None
    blobs: dict[int, list[memoryview]] = field(default_factory=dict)
    size: int = 0
    items: asyncio.Queue[Any] | None = None
    reported_at: float = 0.0

    def take(self, frame: dict[str, Any] | Piece) -> None:
        """Take what arrived for it. Raises for more than was agreed."""
        if isinstance(frame, Piece):
            self.size += max(len(frame.data), _SMALLEST_PIECE)
            if self.size > MAX_BLOBS:
                raise LimitExceeded("The answer is larger than was agreed.")
            self.blobs.setdefault(frame.blob, []).append(frame.data)
        elif frame["t"] == "progress":
            self._progress(str(frame.get("message"))[:500], _number(frame.get("current")), _number(frame.get("total")))
        elif frame["t"] == "item":
            if self.items is None or self.items.full():
                raise LimitExceeded("More items came than there was room for.")
            self.items.put_nowait(frame.get("item"))
        elif not self.answered.done():
            self.answered.set_result(frame)

    def _progress(self, message: str, current: float | None, total: float | None) -> None:
        now = asyncio.get_running_loop().time()
        is_last = total is not None and current == total
        if self.report is not None and (is_last or now - self.reported_at >= _REPORT_S):
            self.reported_at = now
            self.report(message, current, total)

    def joined(self) -> list[bytes]:
        """The blobs, each in one piece."""
        return [b"".join(self.blobs[index]) for index in sorted(self.blobs)]


def _number(value: Any) -> float | None:
    return value if type(value) in (int, float) else None
