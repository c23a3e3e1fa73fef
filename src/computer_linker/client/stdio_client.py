"""A blocking MCP client over stdio that performs the `initialize` handshake, as clients of earlier protocol versions do."""

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.from_thread import start_blocking_portal

from computer_linker.client.channel import ClientFailed, Disconnected, text_of
from computer_linker.client.line_channel import over_stdio

_PROTOCOL = "2025-11-25"

__all__ = ["ClientFailed", "StdioClient"]


class StdioClient:
    """One session with a program that it starts. A context manager: the program ends with it."""

    def __init__(self, command: list[str], home: Path, deadline_s: float = 60.0) -> None:
        self._deadline_s = deadline_s
        self._open = ExitStack()
        with ExitStack() as stack:
            self._stderr = stack.enter_context(tempfile.TemporaryFile())
            self._portal = stack.enter_context(start_blocking_portal())
            opening = over_stdio(home, command, self._stderr)
            try:
                self._channel = stack.enter_context(self._portal.wrap_async_context_manager(opening))
            except ClientFailed as error:
                raise OSError(str(error)) from error
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def initialize(self) -> dict[str, Any]:
        """Perform the handshake and return what the server reports of itself."""
        about = {"name": "computer-linker self-test", "version": "1"}
        answer = self.request("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": about})
        self._portal.call(self._channel.notify, "notifications/initialized")
        return answer

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of one request. Raises ClientFailed."""
        try:
            return self._portal.call(partial(self._request, method, params or {}))
        except TimeoutError:
            raise ClientFailed("the program did not answer in time") from None
        except Disconnected as error:
            self._stderr.seek(0)
            lines = self._stderr.read().decode("utf-8", "replace").splitlines()
            if not lines:
                raise
            raise ClientFailed(f"the program ended: {lines[0].removeprefix('error: ')}") from error

    def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return the envelope, or the info object, in its text."""
        return text_of(self.request("tools/call", {"name": name, "arguments": arguments}))

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        with anyio.fail_after(self._deadline_s):
            return await self._channel.request(method, params, None)
