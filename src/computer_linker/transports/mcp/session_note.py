"""Records in the history that a client has opened a session on a connection."""

import asyncio
from collections.abc import Callable

from computer_linker.model.principal import Principal
from computer_linker.transports.mcp.fast_path import Negotiated
from computer_linker.transports.mcp.tools import Tools

_under_way: set[asyncio.Task[None]] = set()
"""Referenced until they end, also when their connection has ended before."""


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
        noting = asyncio.get_running_loop().create_task(self._tools.opened(self._principal(), negotiated.version or ""))
        _under_way.add(noting)
        noting.add_done_callback(_under_way.discard)
