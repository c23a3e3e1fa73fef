"""call.list: the calls of clients that run now."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.audit.wording import person
from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.model.times import shown_s
from computer_linker.policy.visible_text import escaped
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, Table, owner_operation


class RunningCall(Model):
    operation: Annotated[str, Field(description="Its id, for `call stop`.")]
    client: str
    op: Annotated[str, Field(description="As the client named it.")]
    scope: str
    since: str


class RunningCalls(Model):
    calls: list[RunningCall]


def _text(result: RunningCalls) -> Iterator[Shown]:
    if not result.calls:
        yield Note("No call of a client runs.")
        return
    rows = [(one.operation, one.client, one.op, one.scope, one.since) for one in result.calls]
    yield Table(rows, ("operation", "client", "what", "scope", "since"))


@owner_operation(
    "call.list",
    effect=Effect.OBSERVE,
    where="running",
    idle=RunningCalls(calls=[]),
    text=_text,
    examples=[Example("What runs now?", {})],
)
async def call_list(ctx: Context) -> RunningCalls:
    """List the calls of clients that run now, the oldest first; those that wait for an answer are among them."""
    sessions = ctx.use(LiveSessions).listed()
    found = [
        RunningCall(
            operation=operation,
            client=person(session.principal.id, session.principal.client),
            op=escaped(call.op[:80]),
            scope=escaped(call.on[:80]),
            since=shown_s(call.since),
        )
        for session in sessions
        for operation, call in session.running.items()
    ]
    return RunningCalls(calls=sorted(found, key=lambda one: one.operation))
