"""approvals.deny: the owner's no to one request."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.owner.approvals.allow import answer_for_owner
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, Shown, owner_operation


class DenyInput(Model):
    asked: Annotated[str, Field(description="The id the list shows."), Positional()]


class Refused(Model):
    id: str
    op: str
    scope: str


def _text(result: Refused) -> Iterator[Shown]:
    yield f"Refused {result.op} in {result.scope}."


@owner_operation(
    "approvals.deny",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("Refuse it.", {"input": {"asked": "ask_0123456789abcdef01234567"}}, runs=False)],
)
async def approvals_deny(ctx: Context, input: DenyInput) -> Refused:
    """Say no to one request."""
    asked = await answer_for_owner(ctx, input.asked, "no")
    return Refused(id=asked.id, op=asked.op, scope=asked.scope)
