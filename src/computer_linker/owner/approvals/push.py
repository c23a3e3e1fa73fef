"""approvals.push: announce waiting requests at an address of the owner."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.push import SIGNATURE, PushApprover, new_target
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    Model,
    Named,
    Note,
    Positional,
    Secret,
    Shown,
    owner_operation,
)


class PushInput(Model):
    url: Annotated[
        str, Field(max_length=2000, description="An https address: a webhook, or an ntfy topic."), Positional()
    ]
    ntfy: Annotated[bool, Field(description="It is an ntfy topic, such as https://ntfy.example/my-topic.")] = False
    token: Annotated[
        str | None,
        Field(max_length=500, description="An access token of that server."),
        Named("--token-file"),
        Secret(),
    ] = None
    content: Annotated[
        bool, Field(description="Also send which operation it is, for which client, and what it would change.")
    ] = False


class Pushed(Model):
    id: str
    kind: Literal["ntfy", "webhook"]
    content: bool
    secret: Annotated[str, Field(description="Key of the messages' signature; shown only now.")]


def _text(result: Pushed) -> Iterator[Shown]:
    yield f"Requests that wait are announced there{', with what they are' if result.content else ', without what they are'}."
    yield f"Key of the signature ({SIGNATURE}), shown only now: {result.secret}"
    yield Note(f"To end it: computer-linker approvals unpush {result.id}")
    yield Note(
        "A message has a link to answer by where the approval page is on: computer-linker approvals phone --help"
    )


@owner_operation(
    "approvals.push",
    did="let requests be pushed[ to {push}][ by {kind}]",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[
        Example(
            "A topic of an ntfy server.", {"input": {"url": "https://ntfy.example/topic", "ntfy": True}}, runs=False
        )
    ],
)
async def approvals_push(ctx: Context, input: PushInput) -> Pushed:
    """Announce waiting requests at an address, after a first message that it must take. Off unless you add one."""
    target = new_target(input.url, is_ntfy=input.ntfy, token=input.token, with_content=input.content)
    await ctx.use(PushApprover).try_out(target)
    store = ctx.use(Approvals).store
    store.add(target)
    await store.save()
    ctx.note(push=target.id, kind=target.kind, content=target.content)
    ctx.effect = "confirmed"
    return Pushed(id=target.id, kind=target.kind, content=target.content, secret=target.secret)
