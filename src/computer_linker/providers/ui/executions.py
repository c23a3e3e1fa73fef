"""Running executions, so that desktop.abort can end one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import anyio

from computer_linker.errors import Aborted, Conflict, InvalidRequest, TimedOut
from computer_linker.services import Services

_ENDS_S = 5.0


@dataclass(slots=True)
class Execution:
    """One running desktop operation."""

    scope: str
    principal: str
    stop: anyio.CancelScope
    ended: anyio.Event = field(default_factory=anyio.Event)
    is_aborted: bool = False


class Executions:
    """The running desktop operations by execution id."""

    def __init__(self) -> None:
        self._running: dict[str, Execution] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    @contextmanager
    def running(self, execution_id: str, scope: str, principal: str) -> Iterator[None]:
        """Run the body so that `abort` can cancel it.

        Raises:
            Aborted: desktop.abort ended it.
            Conflict: an execution of this id is running already.
        """
        if execution_id in self._running:
            raise Conflict("An execution of this id is running already.", executionId=execution_id)
        with anyio.CancelScope() as stop:
            one = self._running[execution_id] = Execution(scope, principal, stop)
            try:
                yield
            finally:
                del self._running[execution_id]
                one.ended.set()
        if one.is_aborted:
            raise Aborted("The execution was aborted.", executionId=execution_id)

    async def abort(self, execution_id: str | None, scope: str, principal: str) -> list[str]:
        """Cancel one execution of this caller, or all, and return their ids once they have stopped acting.

        Raises:
            InvalidRequest: no execution of this id is running for this caller; it may have ended.
            TimedOut: one was cancelled and has not ended yet.
        """
        own = [name for name, one in self._running.items() if (one.scope, one.principal) == (scope, principal)]
        ended = own if execution_id is None else [name for name in own if name == execution_id]
        if execution_id is not None and not ended:
            raise InvalidRequest("No such execution is running; it may have ended.", executionId=execution_id[:64])
        stopped = [self._running[name] for name in ended]
        for one in stopped:
            one.is_aborted = True
            one.stop.cancel()
        with anyio.move_on_after(_ENDS_S) as waiting:
            for one in stopped:
                await one.ended.wait()
        if waiting.cancelled_caught:
            raise TimedOut("It was told to stop and has not stopped yet.", seconds=_ENDS_S)
        return ended
