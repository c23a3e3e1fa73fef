"""The blocking client: runs the async one in a thread. There is no second implementation."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from computer_linker.client.asynchronous import DEADLINE_S, AsyncClient, Parts
from computer_linker.client.channel import Answer, Asking, Decision, Question, Report

AskingNow = Callable[[Question], Decision]
"""Shows the question to a person and waits for the decision."""


class Client:
    """One connection. Create it with `over_http`, `over_socket` or `over_stdio`, each a context manager. Threads may share it."""

    def __init__(self, portal: BlockingPortal, inner: AsyncClient) -> None:
        self._portal = portal
        self._inner = inner

    @classmethod
    def over_http(
        cls, url: str, *, token: str | None = None, ask: AskingNow | None = None
    ) -> AbstractContextManager[Self]:
        """As `AsyncClient.over_http`."""
        return cls._on(AsyncClient.over_http(url, token=token, ask=_in_a_thread(ask)))

    @classmethod
    def over_socket(cls, home: Path | None = None, *, ask: AskingNow | None = None) -> AbstractContextManager[Self]:
        """As `AsyncClient.over_socket`."""
        return cls._on(AsyncClient.over_socket(home, ask=_in_a_thread(ask)))

    @classmethod
    def over_stdio(
        cls, home: Path | None = None, *, command: list[str] | None = None, ask: AskingNow | None = None
    ) -> AbstractContextManager[Self]:
        """As `AsyncClient.over_stdio`."""
        return cls._on(AsyncClient.over_stdio(home, command=command, ask=_in_a_thread(ask)))

    @classmethod
    @contextmanager
    def _on(cls, opening: AbstractAsyncContextManager[AsyncClient]) -> Iterator[Self]:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as inner:
            yield cls(portal, inner)

    def scope(self, scope_id: str) -> "Scope":
        """A scope to call operations in."""
        return Scope(self, scope_id)

    def info(self, *include: str) -> dict[str, Any]:
        """As `AsyncClient.info`."""
        return self._portal.call(self._inner.info, *include)

    def history(self, view: str = "last", **query: Any) -> dict[str, Any]:
        """As `AsyncClient.history`."""
        return self._portal.call(partial(self._inner.history, view, **query))

    def call(
        self,
        scope: str,
        op: str,
        target: Any = None,
        input: Parts = None,
        options: Parts = None,
        *,
        report: Report | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> Answer:
        """As `AsyncClient.call`."""
        run = partial(self._inner.call, scope, op, target, input, options, report=report, deadline_s=deadline_s)
        return self._portal.call(run)


class Scope:
    """One scope of a computer."""

    def __init__(self, client: Client, scope_id: str) -> None:
        self._client = client
        self.id = scope_id

    def call(
        self,
        op: str,
        target: Any = None,
        input: Parts = None,
        options: Parts = None,
        *,
        report: Report | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> Answer:
        """Run one operation in this scope, as `Client.call` does."""
        return self._client.call(self.id, op, target, input, options, report=report, deadline_s=deadline_s)


def _in_a_thread(ask: AskingNow | None) -> Asking | None:
    if ask is None:
        return None
    wait_for_person = ask

    async def asking(question: Question) -> Decision:
        return await anyio.to_thread.run_sync(wait_for_person, question)

    return asking
