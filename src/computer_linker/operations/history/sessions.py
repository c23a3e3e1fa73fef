"""history.sessions: the operations of this scope grouped by client session, process and agent session."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.history import HistoryGroup
from computer_linker.operations.history.request import HistoryInput, HistoryOptions, HistoryPage, ask
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes


class Sessions(HistoryPage):
    sessions: list[HistoryGroup]
    scopes: list[HistoryGroup]
    processes: list[HistoryGroup]
    codex_sessions: list[HistoryGroup]
    grouped_events: Annotated[int, Field(description="Events the groups were made of, the newest ones.")]


@operation(
    "history.sessions",
    did="read the history",
    needs={Capability.HISTORY_READ},
    effect=Effect.OBSERVE,
    text=shapes.EVENTS,
    on="any",
    examples=[Example("Who used this scope.", {})],
)
async def history_sessions(
    ctx: Context, input: HistoryInput = HistoryInput(), options: HistoryOptions = HistoryOptions()
) -> Sessions:
    """Group the newest operations of this scope by client session, and those of processes and agents by theirs."""
    return Sessions.from_wire(await ask(ctx, "sessions", input, options))
