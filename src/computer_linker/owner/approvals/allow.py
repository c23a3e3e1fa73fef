"""approvals.allow: the owner's yes to one request."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, Shown, owner_operation
from computer_linker.service.approvals import answer_for_owner


class AllowInput(Model):
    asked: Annotated[str, Field(description="The id the list shows."), Positional()]
    session: Annotated[bool, Field(description="For this client's session and scope, not only once.")] = False


class Allowed(Model):
    id: str
    op: str
    scope: str
    extent: Annotated[
        Literal["once", "session"], Field(description="`once` also where the client's calls belong to no session.")
    ]


def _text(result: Allowed) -> Iterator[Shown]:
    yield f"Allowed {result.op} in {result.scope}{' for this session' if result.extent == 'session' else ' once'}."


@owner_operation(
    "approvals.allow",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("Allow it once.", {"input": {"asked": "ask_0123456789abcdef01234567"}}, runs=False)],
)
async def approvals_allow(ctx: Context, input: AllowInput) -> Allowed:
    """Say yes to one request, exactly as it is shown."""
    asked = await answer_for_owner(ctx, input.asked, "yes_for_session" if input.session else "yes")
    extent = asked.answered.extent if asked.answered is not None else "once"
    return Allowed(id=asked.id, op=asked.op, scope=asked.scope, extent=extent)
