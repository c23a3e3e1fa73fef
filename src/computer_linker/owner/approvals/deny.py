"""approvals.deny: the owner's no to one request, or to all that wait of one client."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from computer_linker.approvals.approvals import Answerer, Approvals
from computer_linker.approvals.request import ApprovalRequest
from computer_linker.approvals.terminal import TerminalApprovals
from computer_linker.errors import NotFound
from computer_linker.owner.approvals.allow import answer_for_owner
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    Model,
    Named,
    Positional,
    Shown,
    owner_operation,
)


class DenyInput(Model):
    asked: Annotated[str | None, Field(description="The id the list shows."), Positional()] = None
    client: Annotated[
        str | None,
        Field(description="Instead: every waiting request of this client, by the name that the list shows."),
        Named(metavar="NAME"),
    ] = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.asked is None) == (self.client is None):
            raise ValueError("give the id of a request, or --client NAME")
        return self


class Refused(Model):
    id: str
    op: str
    scope: str
    requests: Annotated[int, Field(description="How many were denied; the other fields are of the first.")] = 1
    client: str | None = None


def _text(result: Refused) -> Iterator[Shown]:
    if result.client is None:
        yield f"Refused {result.op} in {result.scope}."
    else:
        yield f"Refused {result.requests} request{'' if result.requests == 1 else 's'} of {result.client}."


@owner_operation(
    "approvals.deny",
    did="denied {request}",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[
        Example("Refuse it.", {"input": {"asked": "ask_0123456789abcdef01234567"}}, runs=False),
        Example("Refuse all that a client asks for.", {"input": {"client": "editor"}}, runs=False),
    ],
)
async def approvals_deny(ctx: Context, input: DenyInput) -> Refused:
    """Say no to one request, or with --client to every request of a client that waits now."""
    if input.asked is not None:
        asked = await answer_for_owner(ctx, input.asked, "no")
        return Refused(id=asked.id, op=asked.op, scope=asked.scope)
    approvals, name = ctx.use(Approvals), input.client or ""
    ctx.note(asker=name)
    theirs = [one for one in approvals.waiting() if _is_of(one, name)]
    if not theirs:
        raise NotFound(f"Nothing waits of a client {name[:80]!r}.", hint="computer-linker approvals list")
    ctx.note(way="terminal", asker=name, requests=len(theirs))
    for one in theirs:
        approvals.answer(one.id, "no", Answerer(ctx.principal, "terminal"), ctx.operation_id)
    ctx.effect = "confirmed"
    await ctx.use(TerminalApprovals).waiting()
    first = theirs[0]
    return Refused(id=first.id, op=first.op, scope=first.scope, requests=len(theirs), client=name)


def _is_of(asked: ApprovalRequest, name: str) -> bool:
    """Whether a client is meant by this name: the one it gives itself, with or without its version, or its principal."""
    own = asked.client or ""
    return name in {own, own.partition("/")[0], asked.principal, asked.asker} - {""}
