"""Context: what one running operation may use."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from computer_linker.computer.base import Computer
from computer_linker.model.effect import Known
from computer_linker.model.envelope import Attachment, Call, Reply
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.model.unsynced import Unsynced
from computer_linker.policy.paths import rooted
from computer_linker.registry.services import Services

S = TypeVar("S")
Progress = Callable[[str, float | None, float | None], None]


@dataclass(slots=True)
class Context:
    """The scope, the caller and the machine of one call, and what the operation says about its outcome."""

    operation_id: str
    op: str
    scope: Scope
    principal: Principal
    computer: Computer
    services: Services
    dispatch: Callable[[Call], Awaitable[Reply]]
    """Send another call down the same road (batch.run)."""
    durable_intent: Callable[[], Awaitable[None]]
    """Returns once the intent is durable and what a person was shown is still so. A side effect awaits it just before its
    first irreversible step."""
    beside_intent: Callable[[Callable[[], None]], Awaitable[None]] | None = None
    """Runs work that waits for the disk in one wait with the intent; None for an operation that records none."""
    unsynced_intent: Callable[[], Unsynced] | None = None
    """The file that holds the intent, for whoever makes the change to sync first, instead of `durable_intent`."""
    report: Progress | None = None
    cargo: Any = None
    """What came beside the request, such as a stream of bytes from another computer."""
    effect: Known | None = None
    boundary: str | None = None
    warnings: list[str] = field(default_factory=list)
    notes: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)

    def path(self, target: str, *, for_writing: bool = False) -> RootedPath:
        """The target beneath this scope's root. Raises before any disk is touched when policy forbids the name."""
        return rooted(self.scope, target, config=self.services.config, for_writing=for_writing)

    def use(self, kind: type[S]) -> S:
        """A long-lived part of the service, by its type."""
        return self.services.use(kind)

    def warn(self, sentence: str) -> None:
        """Tell the caller something that is not a failure."""
        self.warnings.append(sentence)

    def note(self, **facts: str | int | float | bool | None) -> None:
        """Keep sizes, counts and digests in the audit; never contents, arguments or text."""
        self.notes.update(facts)

    def attach(self, mime: str, data: bytes) -> None:
        """Send bytes beside the envelope (an image block over MCP)."""
        self.attachments.append(Attachment(mime, data))

    def progress(self, message: str, current: float | None = None, total: float | None = None) -> None:
        """Tell a waiting client how far this is; free when nobody asked."""
        if self.report is not None:
            self.report(message, current, total)
