"""The tool interface: a name, typed parameters, and one method that calls operations on a computer."""

import getpass
import shutil
import tempfile
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import ValidationError

from computer_linker import operations
from computer_linker.audit.store import AuditStore
from computer_linker.computer.base import Computer
from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.config.schema import Config
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.pause import HALTED_NAME
from computer_linker.errors import LinkError
from computer_linker.home import state_home
from computer_linker.model.base import Model
from computer_linker.model.envelope import Call, Reply, error_in
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.registry.catalog import Catalog, collect
from computer_linker.services import Services

# The dispatcher of one tool session: the tools' calls take the same path as those of any client.

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


P = TypeVar("P", bound=Model)


class PermissionDeniedError(Exception):
    """The permission handler refused; nothing was done."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes that belong to a result, such as a screenshot."""

    filename: str
    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one use of a tool; `error` is a sentence when it failed."""

    title: str
    output: str = ""
    error: str | None = None
    attachments: tuple[Attachment, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """What a tool is about to do, for the permission handler."""

    tool: str
    argument: str
    description: str


PermissionHandler = Callable[[PermissionAsked], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Used:
    """One entry of a session's log: tool, action and outcome. Never what was typed or seen."""

    tool: str
    argument: str
    ok: bool
    at: float
    duration_ms: float


@dataclass
class ToolContext:
    """One session: the computer, the permission handler, and the state the tools of this session share.

    `home` stores the history of the session; without it, the history is deleted with the session.
    """

    session_id: str
    computer: Computer
    permission_handler: PermissionHandler | None = None
    home: Path | None = None
    last_frame: str | None = None
    controls: dict[str, str] = field(default_factory=dict)
    """Role and name of the controls that were listed last, by reference."""
    log: list[Used] = field(default_factory=list)
    learned: dict[str, str] = field(default_factory=dict)
    _session: Session | None = None

    async def call(
        self, op: str, target: Any = None, input: dict[str, Any] | None = None, options: dict[str, Any] | None = None
    ) -> Reply:
        """Run an operation on the computer: checked, queued, recorded and read back as for any client.

        Raises:
            LinkError: the error of the operation.
        """
        if self._session is None:
            self._session = Session.open(self.session_id, self.computer, self.home)
        return await self._session.call(op, target, input, options)

    async def aclose(self) -> None:
        """End the session. The computer is not closed."""
        if self._session is not None:
            await self._session.aclose()
            self._session = None

    async def check_permission(self, tool: str, argument: str, description: str) -> None:
        """Ask the handler. Raises PermissionDeniedError when it refuses; without a handler everything is allowed."""
        if self.permission_handler is None:
            return
        if not await self.permission_handler(PermissionAsked(tool, argument, description)):
            raise PermissionDeniedError(f"{tool}: {description} was not allowed.")


class Tool(ABC, Generic[P]):
    """One ability of an agent. Subclasses declare their parameters and run operations through `ctx.call`."""

    name: ClassVar[str]
    description: ClassVar[str]
    Params: ClassVar[type[Model]]

    @abstractmethod
    async def execute(self, params: P, ctx: ToolContext) -> ToolResult:
        """Run the tool. Raises LinkError for a failure and PermissionDeniedError for a refusal."""

    async def run(self, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        """Parse a model's arguments, run the tool and return its result; a failure becomes a result with an error sentence."""
        started = time.perf_counter()
        result = await self._tried(arguments, ctx)
        word = arguments.get("action", "") if isinstance(arguments, dict) else ""
        elapsed = round((time.perf_counter() - started) * 1000, 1)
        ctx.log.append(Used(self.name, str(word)[:40], result.ok, time.time(), elapsed))
        del ctx.log[:-1000]
        return result

    async def _tried(self, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        try:
            params: Any = self.Params.from_wire(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            return ToolResult(self.name, error=f"`{place}`: {first['msg']}.", metadata={"code": "invalid_request"})
        try:
            return await self.execute(params, ctx)
        except PermissionDeniedError as error:
            return ToolResult(self.name, error=str(error), metadata={"code": "permission_denied"})
        except LinkError as error:
            return ToolResult(self.name, error=error.message, metadata={"code": error.code, "details": error.details})

    def schema(self) -> dict[str, Any]:
        """The description for a model: name, description and JSON schema of the parameters."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.Params.model_json_schema(by_alias=True),
        }
