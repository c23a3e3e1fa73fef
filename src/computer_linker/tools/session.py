"""The dispatcher of one tool session: the tools' calls take the same path as those of any client."""

import getpass
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any, Self

from computer_linker import operations
from computer_linker.audit.store import AuditStore
from computer_linker.computer.base import Computer
from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.config.schema import Config
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.pause import HALTED_NAME
from computer_linker.home import state_home
from computer_linker.model.envelope import Call, Reply, error_in
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.registry.catalog import Catalog, collect
from computer_linker.services import Services

_SCOPE = "desktop"
_CAPABILITIES = [
    "screen:capture", "desktop:observe", "desktop:control", "clipboard:read", "clipboard:write", "app:control",
]  # fmt: skip


class Session:
    """One scope for the whole desktop of a computer, with its own history and device queue."""

    def __init__(self, dispatcher: Dispatcher, principal: Principal) -> None:
        self._dispatcher = dispatcher
        self._principal = principal

    @classmethod
    def open(cls, session_id: str, computer: Computer, home: Path | None) -> Self:
        """Open a session on `computer`; its history is stored in `home`, or in a folder deleted with the session."""
        folder = home or Path(tempfile.mkdtemp(prefix="computer-linker-tools-"))
        scope = Scope.from_wire({"id": _SCOPE, "type": "computer", "capabilities": _CAPABILITIES})
        config = Config(machine_id="tools", machine_name="tools", scopes=[scope])
        services, catalog = Services(folder, lambda: config), collect(operations)
        services.provide(Computer, computer)
        services.provide(Catalog, catalog)
        # `halt` is the owner's, on this computer: it holds for tools as for the service's clients.
        halted = None if isinstance(computer, RemoteComputer) else Path(state_home()) / HALTED_NAME
        dispatcher = Dispatcher(catalog, services, computer, services.use(AuditStore), halted)
        who = Principal(
            id=f"local:{getpass.getuser()}", proof="local_user", session=session_id, connection=session_id, client="tools"
        )  # fmt: skip
        made = cls(dispatcher, who)
        if home is None:
            weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
        return made

    async def call(self, op: str, target: Any, input: dict[str, Any] | None, options: dict[str, Any] | None) -> Reply:
        """Run one operation. Raises the LinkError of its failure."""
        reply = await self._dispatcher.call(Call(_SCOPE, op, target, input, options), self._principal)
        if not reply.ok:
            raise error_in(reply.envelope)
        return reply

    async def aclose(self) -> None:
        """Close the history and what the operations opened. The computer stays open."""
        await self._dispatcher.aclose()
        self._dispatcher.services.provide(Computer, None)
        await self._dispatcher.services.aclose()
