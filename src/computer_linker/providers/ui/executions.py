"""Executions under way, so that desktop.abort can end one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import anyio

from computer_linker.errors import Aborted, Conflict, InvalidRequest


@dataclass(slots=True)
class Execution:
    """One desktop operation that is running."""

    scope: str
    principal: str
    stop: anyio.CancelScope
    is_aborted: bool = False


class Executions:
    """The desktop operations that are running now, by their execution id."""

    def __init__(self) -> None:
        self._running: dict[str, Execution] = {}

    @classmethod
    def open(cls, services: object) -> Self:
        return cls()

    @contextmanager
    def running(self, execution_id: str, scope: str, principal: str) -> Iterator[None]:
        """Let the body be ended from outside.

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
        if one.is_aborted:
            raise Aborted("The execution was aborted.", executionId=execution_id)

    def abort(self, execution_id: str | None, scope: str, principal: str) -> list[str]:
        """End one execution of this caller, or all of them; the answer names those that were ended.

        Raises:
            InvalidRequest: no execution of this id is running for this caller; it may have ended.
        """
        own = [name for name, one in self._running.items() if (one.scope, one.principal) == (scope, principal)]
        ended = own if execution_id is None else [name for name in own if name == execution_id]
        if execution_id is not None and not ended:
            raise InvalidRequest("No such execution is running; it may have ended.", executionId=execution_id[:64])
        for name in ended:
            self._running[name].is_aborted = True
            self._running[name].stop.cancel()
        return ended
