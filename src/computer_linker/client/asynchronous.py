"""The async client: scopes, operations, facts and history of one computer."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Self

import anyio

from computer_linker.client.channel import (
    Answer,
    Asking,
    Channel,
    ClientFailed,
    Decision,
    Question,
    Report,
    answer_of,
    raise_failure,
    text_of,
    with_meta,
)
from computer_linker.errors import TimedOut
from computer_linker.model.base import Model

DEADLINE_S = 120.0
_CHOICES: dict[Decision, str] = {"once": "Allow once", "no": "Do not allow"}
Parts = Model | Mapping[str, Any] | None


class AsyncClient:
    """One connection. Create it with `over_http`, `over_socket` or `over_stdio`, each an async context manager."""

    def __init__(self, channel: Channel, ask: Asking | None = None) -> None:
        """`ask` shows a person what needs approval, and returns the decision; without it such acts are refused."""
        self._channel = channel
        self._ask = ask

    @classmethod
    def over_http(
        cls, url: str, *, token: str | None = None, ask: Asking | None = None
    ) -> AbstractAsyncContextManager[Self]:
        """Connect to a running service by its URL, such as http://127.0.0.1:3939/mcp."""
        from computer_linker.client.http_channel import over_http

        return cls._on(over_http(url, token), ask)

    @classmethod
    def over_socket(cls, home: Path | None = None, *, ask: Asking | None = None) -> AbstractAsyncContextManager[Self]:
        """Connect to the service of a state folder on this machine; one is started when none runs."""
        from computer_linker.client.line_channel import over_socket

        return cls._on(over_socket(home), ask)

    @classmethod
    def over_stdio(
        cls, home: Path | None = None, *, command: list[str] | None = None, ask: Asking | None = None
    ) -> AbstractAsyncContextManager[Self]:
        """Connect to a program that speaks MCP on its pipes: ours, or one for another host (`ssh host computer-linker stdio`)."""
        from computer_linker.client.line_channel import over_stdio

        return cls._on(over_stdio(home, command), ask)

    @classmethod
    @asynccontextmanager
    async def _on(cls, opening: AbstractAsyncContextManager[Channel], ask: Asking | None) -> AsyncIterator[Self]:
        async with opening as channel:
            yield cls(channel, ask)

    def scope(self, scope_id: str) -> "AsyncScope":
        """A scope to call operations in. The first call shows whether it exists."""
        return AsyncScope(self, scope_id)

    async def info(self, *include: str) -> dict[str, Any]:
        """Facts of this computer and of this client's rights; `include` picks parts of get_computer_info."""
        return await self._tool_data("get_computer_info", {"include": list(include)} if include else {})

    async def history(self, view: str = "last", **query: Any) -> dict[str, Any]:
        """The history: views last, timeline, sessions, connections, failed_replay and debug_bundle."""
        return await self._tool_data("get_operation_history", {"view": view, **query})

    async def call(
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
        """Run one operation. Raises the LinkError of its code (PathOutOfScope, ...) when it is refused or fails."""
        call: dict[str, Any] = {"scope": scope, "op": op}
        if target is not None:
            call["target"] = target
        for name, part in (("input", input), ("options", options)):
            if part is not None:
                call[name] = _plain(part)
        return answer_of(await self._tool("computer_operation", call, report, deadline_s))

    async def _tool_data(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = text_of(await self._tool(tool, arguments, None, DEADLINE_S))
        raise_failure(answer)
        return answer

    async def _tool(
        self, name: str, arguments: dict[str, Any], report: Report | None, deadline_s: float
    ) -> dict[str, Any]:
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        try:
            with anyio.fail_after(deadline_s):
                while True:
                    result = await self._request("tools/call", params, report)
                    if result.get("resultType") != "input_required":
                        return result
                    params = {**params, **await self._decided(result)}
        except TimeoutError:
            raise TimedOut(f"No answer came within {deadline_s:g} seconds.", seconds=deadline_s) from None

    async def _request(self, method: str, params: dict[str, Any], report: Report | None) -> dict[str, Any]:
        token = None if report is None else self._channel.next_number
        given = with_meta(params, can_ask=self._ask is not None, progress_token=token)
        return await self._channel.request(method, given, report)

    async def _decided(self, result: dict[str, Any]) -> dict[str, Any]:
        """The person's answers to the service's questions."""
        if self._ask is None:
            raise ClientFailed("the service asks a person, and this client has no way to")
        responses = {}
        for key, request in result["inputRequests"].items():
            decision = await self._ask(Question(request["params"]["message"]))
            responses[key] = {"action": "accept", "content": {"decision": _CHOICES[decision]}}
        return {"requestState": result["requestState"], "inputResponses": responses}


class AsyncScope:
    """One scope of a computer."""

    def __init__(self, client: AsyncClient, scope_id: str) -> None:
        self._client = client
        self.id = scope_id

    async def call(
        self,
        op: str,
        target: Any = None,
        input: Parts = None,
        options: Parts = None,
        *,
        report: Report | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> Answer:
        """Run one operation in this scope, as `AsyncClient.call` does."""
        return await self._client.call(self.id, op, target, input, options, report=report, deadline_s=deadline_s)


def _plain(part: Model | Mapping[str, Any]) -> dict[str, Any]:
    # Only the fields that were set: the operation has the defaults.
    return part.model_dump(mode="json", by_alias=True, exclude_unset=True) if isinstance(part, Model) else dict(part)
