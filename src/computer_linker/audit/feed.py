"""LiveFeed: the newest records of the history in memory, and a wait for the next one."""

import asyncio
from collections import deque

_KEPT = 1000


class LiveFeed:
    """Numbers records as they are appended. Appending costs a deque entry; readers are woken once per loop iteration."""

    def __init__(self) -> None:
        self._kept: deque[str] = deque(maxlen=_KEPT)
        self._readers: set[asyncio.Future[None]] = set()
        self.number = 0
        """How many records there were since the service began."""

    def add(self, record: str) -> None:
        """Keep a record: the members of a JSON object, as the journal stores them."""
        self.number += 1
        self._kept.append(record)
        while self._readers:
            reader = self._readers.pop()
            if not reader.done():
                reader.set_result(None)

    def since(self, number: int) -> list[str]:
        """The records after this number, as far as they are kept; all of them for a number of another service."""
        missing = self.number - number if 0 <= number <= self.number else self.number
        return list(self._kept)[-missing:] if missing else []

    async def changed(self, number: int, seconds: float) -> None:
        """Return once there is a record after this number, or after so many seconds."""
        if self.number != number:
            return
        reader: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.add(reader)
        try:
            await asyncio.wait([reader], timeout=seconds)
        finally:
            self._readers.discard(reader)
