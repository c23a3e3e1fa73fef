"""What a tool is: a name, typed parameters, and one method that works on a computer."""

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import ValidationError

from computer_linker.computer.base import Computer
from computer_linker.errors import LinkError
from computer_linker.model.base import Model
from computer_linker.model.scope import Scope
from computer_linker.providers.frames import Frames
from computer_linker.providers.refs.store import References

P = TypeVar("P", bound=Model)


class PermissionDeniedError(Exception):
    """The permission handler said no; nothing was done."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes that belong to a result, such as a screenshot."""

    filename: str
    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one use of a tool; `error` is a sentence when it failed."""

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
    """What a tool is about to do, for the handler to judge."""

    tool: str
    argument: str
    description: str


PermissionHandler = Callable[[PermissionAsked], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Used:
    """One line of a session's log: which tool, what it did in a word, and how it went. Never what was typed or seen."""

    tool: str
    argument: str
    ok: bool
    at: float
    duration_ms: float


@dataclass
class ToolContext:
    """One session: the computer, who may say no, and what the tools of this session share."""

    session_id: str
    computer: Computer
    permission_handler: PermissionHandler | None = None
    frames: Frames = field(default_factory=Frames)
    references: References = field(default_factory=References)
    last_frame: str | None = None
    log: list[Used] = field(default_factory=list)
    learned: dict[str, str] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        """The session as a scope, for parts that keep things apart by scope."""
        name = "".join(character if character.isalnum() else "-" for character in self.session_id)
        return Scope(id=f"s{name[:60]}", type="computer")

    async def check_permission(self, tool: str, argument: str, description: str) -> None:
        """Ask the handler. Raises PermissionDeniedError when it says no; without a handler all is allowed."""
        if self.permission_handler is None:
            return
        if not await self.permission_handler(PermissionAsked(tool, argument, description)):
            raise PermissionDeniedError(f"{tool}: {description} was not allowed.")


class Tool(ABC, Generic[P]):
    """One ability of an agent. Subclasses say what they take and do it through `ctx.computer` alone."""

    name: ClassVar[str]
    description: ClassVar[str]
    Params: ClassVar[type[Model]]

    @abstractmethod
    async def execute(self, params: P, ctx: ToolContext) -> ToolResult:
        """Do it. Raises LinkError for what failed and PermissionDeniedError for what was refused."""

    async def run(self, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        """Parse a model's arguments, do it, and answer; what fails becomes a result with an error sentence."""
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
        """What a model is told: name, description and JSON schema of the parameters."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.Params.model_json_schema(by_alias=True),
        }
