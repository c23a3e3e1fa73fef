"""Context: what one running operation may use."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from computer_linker.approvals.approvals import Yes
from computer_linker.approvals.request import Preview
from computer_linker.computer.base import Computer
from computer_linker.computer.facets.files import Change, Changed
from computer_linker.errors import LinkError
from computer_linker.model.effect import Known
from computer_linker.model.envelope import Attachment, Call, Reply
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.paths import rooted
from computer_linker.services import Services
from computer_linker.undo.journal import UndoJournal
from computer_linker.undo.steps import recover

S = TypeVar("S")
Progress = Callable[[str, float | None, float | None], None]


class Planned(BaseException):
    """Ends the body of an operation that runs for its preview alone, with the file changes it would make."""

    def __init__(self, changes: Sequence[Change]) -> None:
        super().__init__()
        self.changes = changes


class Step(NamedTuple):
    """A call that an operation makes."""

    call: Call
    refers: bool = False
    """Parts of it come from the results of earlier steps, so it is not known yet."""
    ends_all: bool = True
    """The calls after it are not made when it fails."""


class Dispatch(Protocol):
    """Runs another call through the dispatcher; `yes` is a person's answer to it, where they were asked about it with others."""

    async def __call__(self, call: Call, yes: Yes | None = None, /) -> Reply: ...


@dataclass(slots=True)
class Context:
    """The scope, caller and machine of one call, and what the operation reports about its outcome."""

    operation_id: str
    op: str
    scope: Scope
    principal: Principal
    computer: Computer
    services: Services
    dispatch: Dispatch
    """Run another call through the dispatcher (batch.run)."""
    refuse: Callable[[Call, LinkError], Awaitable[Reply]]
    """Answer and audit another call that cannot be run (batch.run)."""
    about_steps: Callable[["Context", Sequence[Step]], Awaitable[Preview | None]]
    """What a person would be shown of the calls that an operation makes; None where none of them needs a yes."""
    durable_intent: Callable[[], Awaitable[None]]
    """Returns once the intent is durable and the approved state is unchanged. A side effect awaits it just before its
    first irreversible step."""
    sync_with_intent: Callable[[Callable[[], None]], Awaitable[None]] | None = None
    """Runs work that syncs to disk in one group commit with the intent; None for an operation without an intent."""
    parent: str | None = None
    """The operation that this call is a step of (batch.run)."""
    report: Progress | None = None
    cwd: str = ""
    """The folder that relative paths of this request start from (`options.cwd`); empty is the scope's first root."""
    granted: Sequence[Yes | None] = ()
    """A person's yes to the calls that it makes, in their order; None where a call asks for itself, or needs none."""
    payload: Any = None
    """Typed arguments beside the request, of a facet call."""
    stream: Any = None
    """Bytes beside the request, from or to another computer."""
    may_change: bool = False
    """The operation declares that it changes files, so its intent is recorded and its changes are shown."""
    is_preview: bool = False
    """Dry run: the body runs to find its file changes, and ends where it would make them."""
    is_held: bool = False
    """A person said yes: right before the effect everything must still be what they were shown."""
    planned: Sequence[Change] | None = None
    """The file changes that are being made."""
    effect: Known | None = None
    failure: LinkError | None = None
    """Why the call is not ok although it has a result, such as a batch with a failed step: the answer carries both."""
    boundary: str | None = None
    warnings: list[str] = field(default_factory=list)
    notes: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)

    def path(self, target: str, *, for_writing: bool = False) -> RootedPath:
        """The target beneath a root of this scope. Raises before any disk is touched when policy forbids the name."""
        return rooted(self.scope, target, config=self.services.config, for_writing=for_writing, cwd=self.cwd)

    def path_from_root(self, target: str) -> RootedPath:
        """A path that the service itself names: `options.cwd` of the request does not apply."""
        return rooted(self.scope, target, config=self.services.config)

    async def change(self, changes: Sequence[Change], *, dry_run: bool = False) -> list[Changed]:
        """Make all of the file changes or none. The only way an operation changes files.

        What they replace is stored for file.undo. The intent is durable, and an approval checked against these very changes,
        before the first of them is made; `effect` is set to what was read back. A dry run raises what they would raise.
        """
        if self.is_preview:
            raise Planned(changes)
        if not self.may_change:
            raise RuntimeError(f'{self.op} changes files, so it declares effect=Effect.CHANGE and shows="changes"')
        self.planned = changes
        journal = self.use(UndoJournal)
        if not journal.is_recovered:
            await recover(journal, self.computer.files)
        entry = journal.begin(self.operation_id, self.scope.id, self.principal.id, self.op)
        if dry_run:
            await self.computer.files.rehearse(changes, keeper=entry)
            self.effect = "suspected_noop"
            return []
        done = await self.computer.files.change(
            changes, gate=self.durable_intent, keeper=entry, beside=self.sync_with_intent
        )
        self.effect = "confirmed" if all(change.is_confirmed for change in done) else "unverifiable"
        for change in done:
            self.warnings.extend(change.warnings)
            if not change.is_undoable:
                self.warn(f"undoable: false. {change.path.shown} was too large to keep, so this cannot be taken back.")
        return done

    def use(self, kind: type[S]) -> S:
        """Return a long-lived component of the service, by its type."""
        return self.services.use(kind)

    def warn(self, sentence: str) -> None:
        """Add a warning to the answer."""
        self.warnings.append(sentence)

    def note(self, **facts: str | int | float | bool | None) -> None:
        """Record sizes, counts and digests in the audit; never contents, arguments or text."""
        self.notes.update(facts)

    def attach(self, mime: str, data: bytes) -> None:
        """Send bytes beside the envelope (an image block over MCP)."""
        self.attachments.append(Attachment(mime, data))

    def progress(self, message: str, current: float | None = None, total: float | None = None) -> None:
        """Report progress to a waiting client; does nothing when the client did not ask for it."""
        if self.report is not None:
            self.report(message, current, total)
