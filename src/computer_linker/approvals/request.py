"""One request that waits for the owner: what it is bound to, what is shown of it, and what a yes to it is held to."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.audit.command_line import command_preview
from computer_linker.errors import (
    ConfirmRequired,
    Conflict,
    DeniedByPerson,
    ElementNotFound,
    InvalidRequest,
    LinkError,
    NoAnswer,
    NotFound,
    PathOutOfScope,
    PermissionDenied,
    ProcessNotFound,
    StaleReference,
)
from computer_linker.model.event import Approval, Way
from computer_linker.policy.visible_text import principal_label

State = Literal["waiting", "approved", "denied", "spent", "expired"]
Answer = Literal["yes", "same", "shape", "no"]
"""The owner's answer: once, this exact request again, requests of this shape, or no."""
WAIT_S = 60.0
SETTLE_S = 0.7
"""A key answers a request only after it stood on the screen for this long: one meant for what stood there before does nothing."""
_FINAL = (PermissionDenied, PathOutOfScope, NotFound, ProcessNotFound, InvalidRequest, ElementNotFound, StaleReference)
"""Faults of a preview that no answer changes; others (a page or a screen that cannot be looked at) may pass."""
DIALOG_CHARACTERS = 2600
"""A client's dialog is trusted to show this much of a request."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What an approver is shown beside the request itself: what it would change, or what it would touch."""

    lines: tuple[str, ...]
    holds: Mapping[str, str] = field(default_factory=dict)
    """State that must be unchanged right before the effect: digests by name. Empty when there is nothing to compare."""
    photograph: Callable[[], Awaitable[bytes | None]] | None = None
    """Takes a picture (PNG) of where it would act; only when a person is asked."""
    fault: LinkError | None = None
    """Why no preview could be made. An approval of what could not be shown is never used: ask again when it can be."""
    obstacle: LinkError | None = None
    """Why it would be refused or fail as things are now, though it can be shown."""
    argv: tuple[str, ...] = ()
    """The program and its arguments, where it runs one."""
    paths: tuple[str, ...] = ()
    """The paths it changes, or the folder it works in."""
    kinds: frozenset[str] = frozenset()
    """What it does to files, as verbs: `writes`, `removes`; of an agent which one it starts, and in which mode."""
    links: tuple[str, ...] = ()
    """Symbolic links on these paths: what it changes lies elsewhere, so it is of no shape."""
    is_once: bool = False
    """A yes to it never stands, and no client's own dialog gives one: it writes content of which not even a digest is known, or
    runs as the superuser."""
    application: str = ""
    """The application whose window it acts on."""
    steps: "tuple[ApprovalRequest | None, ...]" = ()
    """Of a batch: what was shown of each step that its yes covers. Such a yes never stands."""
    does: str = ""
    """Of a batch: its steps, for the history."""

    @property
    def refusal(self) -> LinkError | None:
        """Why it is refused whatever a person answers: the policy forbids it, or what it is for does not exist."""
        return self.obstacle or (self.fault if isinstance(self.fault, _FINAL) else None)


@dataclass(slots=True)
class ApprovalRequest:
    """One request waiting for approval. Its id is stable and not secret; the token is secret."""

    id: str
    op: str
    scope: str
    digest: str
    preview: str
    principal: str
    session: str
    connection: str
    client: str | None
    """The name that the client gives itself."""
    asked_at: float
    expires_at: float
    about: Preview | None = None
    rest: str = ""
    """Digest of the parts of the request that every request of its shape has in common."""
    policy: str = ""
    """Identity of the scope's rules when it was asked."""
    is_forwarded: bool = False
    """It came through a proxy or a tunnel, or from another machine."""
    consented_as: str | None = None
    """The name under which the owner consented to the OAuth client that asks."""
    picture: bytes | None = None
    token_hash: bytes | None = None
    state: State = "waiting"
    is_in_dialog: bool = False
    """The client was asked to show it in its own dialog; only then does an answer from there count."""
    may_allow_in_dialog: bool = False
    """The owner lets this client's dialog approve."""
    is_dialog_over: bool = False
    """The client has shown it in its own dialog, without an answer."""
    answered: Approval | None = None
    """Who answered, and how."""

    @property
    def bound(self) -> tuple[str, str, str]:
        """What an approval is bound to: `Principal.bound` of the caller."""
        return (self.principal, self.session, self.connection)

    @property
    def asker(self) -> str:
        """The requester for display: the name that the client gives itself, and its proven identity."""
        principal = principal_label(self.principal) if self.consented_as is None else f"OAuth {self.consented_as}"
        principal += ", from outside this computer" if self.is_forwarded else ""
        return principal if self.client is None else f"{self.client} ({principal})"

    @property
    def can_be_allowed(self) -> bool:
        """False where what it is for could not be shown: a yes to that would have no effect."""
        return self.about is None or self.about.fault is None

    @property
    def text(self) -> str:
        """The whole request as plain text: what it would change or touch, then its exact bytes."""
        lines = () if self.about is None else self.about.lines
        return "\n".join([*lines, "", "The exact request:", self.preview]) if lines else self.preview

    @property
    def holds(self) -> Mapping[str, str]:
        """What a yes is held to."""
        return {} if self.about is None else self.about.holds

    @property
    def seconds_left(self) -> int:
        """How long the owner still has to answer."""
        return max(0, round(self.expires_at - time.monotonic()))

    @property
    def fits_a_dialog(self) -> bool:
        """True when a client's dialog is trusted to show the whole text; it does not report how much of it it shows."""
        return len(self.text) <= DIALOG_CHARACTERS


class NeedsInput(Exception):
    """Returns the request to the client as this call's result; the client repeats the call with the answer."""

    def __init__(self, asked: ApprovalRequest) -> None:
        super().__init__(asked.id)
        self.asked = asked


class Denied(DeniedByPerson):
    """A person denied the request, or the client's own dialog did, which no owner may have seen."""

    def __init__(self, asked: ApprovalRequest) -> None:
        given = asked.answered
        by = {} if given is None else {"by": given.by, "way": given.way}
        who = "The client's own dialog" if given is not None and given.way == "dialog" else "A person"
        super().__init__(f"{who} said no to {asked.op}.", approvalId=asked.id, answer="no", **by)
        self.approval = given


def possible(about: Preview | None) -> Preview | None:
    """Raise the refusal of what no yes could make happen: the policy forbids it, or what it is for does not exist."""
    if about is not None and about.refusal is not None:
        raise about.refusal
    return about


def check_unchanged(asked: ApprovalRequest, now: Preview | None) -> None:
    """Refuse when the state differs from what the person approved, or cannot be read again.

    Raises:
        StaleReference, ElementNotFound: the target is gone.
        Conflict: the target changed, or cannot be read.
    """
    was, is_now = asked.about or Preview(()), now or Preview(())
    fault = is_now.fault or was.fault
    if isinstance(fault, StaleReference | ElementNotFound):
        raise fault
    if fault is not None:
        raise Conflict(
            f"What {asked.op} is for could not be looked at, so nothing was done. {fault.message}", changed=[]
        )
    changed = sorted(name for name in {*was.holds, *is_now.holds} if was.holds.get(name) != is_now.holds.get(name))
    changed += sorted({*was.links} ^ {*is_now.links})
    if changed:
        raise Conflict(
            f"What {asked.op} is for is no longer what the person was shown ({', '.join(changed[:3])}), so nothing was done. "
            "Their yes is used up: send the request again to ask anew.",
            changed=changed[:50],
        )


def still_needs_a_yes(asked: ApprovalRequest, *, was_shown: bool) -> ConfirmRequired:
    """The refusal of a call whose request is still open, with how the owner can answer it."""
    why = (
        "the client's own dialog gave none that counts (by default only the owner's channels can approve)"
        if was_shown
        else "no approver is there to be asked"
    )
    return ConfirmRequired(
        f"{asked.op} needs a person's yes, and {why}. The owner can allow it with `computer-linker approvals`; then send "
        f"the same request again within {WAIT_S:g} seconds.",
        approvalId=asked.id,
        digest=asked.digest,
        answer="none",
        approveWith=f"computer-linker approvals allow {asked.id}",
    )


def no_answer(asked: ApprovalRequest) -> NoAnswer:
    """The refusal of a call whose request was shown and not answered in time."""
    return NoAnswer(
        f"No answer came in time to the request for {asked.op}, so nothing was done.",
        approvalId=asked.id,
        answer="none",
    )


def left_unanswered(asked: ApprovalRequest) -> NoAnswer:
    """The refusal of a call whose approver was there and went away; its request stays open for the rest of its time."""
    return NoAnswer(
        f"The approver left without an answer to the request for {asked.op}, so nothing was done. It can still be allowed for "
        f"{asked.seconds_left} seconds; then send the same request again.",
        approvalId=asked.id,
        answer="none",
        approveWith=f"computer-linker approvals allow {asked.id}",
    )


def facts_of(asked: ApprovalRequest, answer: Answer, way: Way) -> dict[str, str]:
    """The facts in an answer's event: its channel, and the request it is about."""
    request = {"asked": asked.id, "operation": asked.op, "inScope": asked.scope, "digest": asked.digest}
    request["asker"] = asked.client or asked.principal
    seen = asked.about or Preview(())
    if seen.does:
        request["does"] = seen.does
    if seen.argv:
        request["command"] = command_preview(seen.argv)
    elif seen.paths:
        request["path"] = seen.paths[0]
    return {"way": way, **request, **({} if answer == "no" else {"extent": "once" if answer == "yes" else answer})}
