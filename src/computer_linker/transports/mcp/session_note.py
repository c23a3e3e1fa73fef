"""Records in the history that a client has opened a session on a connection."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Self

from computer_linker.model.principal import Principal
from computer_linker.services import Services
from computer_linker.transports.mcp.fast_path import Negotiated
from computer_linker.transports.mcp.tools import Tools

_CLOSE_S = 5.0


class SessionNotes:
    """The records under way, also of connections that have ended; shutdown waits for them."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()

    @classmethod
    def open(cls, _services: Services) -> Self:
        return cls()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        noting = asyncio.get_running_loop().create_task(work)
        self._under_way.add(noting)
        noting.add_done_callback(self._under_way.discard)

    async def aclose(self) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_CLOSE_S)


class SessionNote:
    """Notes one connection's session, once it is known who opened it."""

    def __init__(self, tools: Tools, principal: Callable[[], Principal]) -> None:
        self._tools = tools
        self._principal = principal
        self._is_noted = False

    def note(self, negotiated: Negotiated) -> None:
        if self._is_noted or negotiated.era == "undecided":
            return
        self._is_noted = True
        work = self._tools.opened(self._principal(), negotiated.version or "")
        self._tools.services.use(SessionNotes).begin(work)
