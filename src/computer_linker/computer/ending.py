"""The end of a process, recorded once and reported to every waiter."""

import asyncio
from collections.abc import Callable

from computer_linker.computer.facets.processes import Echo, Ended


class Ending:
    """Base class of each platform's child; the backend calls `has_ended`."""

    def __init__(self) -> None:
        self.ended: Ended | None = None
        self._waiters: list[Callable[[Ended], None]] = []

    async def wait(self) -> Ended:
        """Return once the process has ended and been reaped."""
        if self.ended is None:
            done: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
            self._waiters.append(lambda ended: None if done.done() else done.set_result(ended))
            return await done
        return self.ended

    def when_ended(self, call: Callable[[Ended], None]) -> None:
        """Call back, on the event loop, once the process has ended."""
        if self.ended is not None:
            call(self.ended)
        else:
            self._waiters.append(call)

    def echo(self) -> Echo:
        """Who echoes typed text; none, where the platform does not show it."""
        return "none"

    def waits_for_input(self) -> bool | None:
        """Unknown, where the platform does not show it."""
        return None

    def has_ended(self, ended: Ended) -> None:
        """Notify every waiter; only the first call has an effect."""
        if self.ended is None:
            self.ended = ended
            waiters, self._waiters = self._waiters, []
            for call in waiters:
                call(ended)
