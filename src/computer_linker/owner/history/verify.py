"""history.verify: whether the history is what was written."""

from collections.abc import Iterator

from anyio import to_thread

from computer_linker.errors import NotFound
from computer_linker.operations.history.verify import Verified
from computer_linker.registry.owner import Context, Effect, Example, Shown, owner_operation


def _text(result: Verified) -> Iterator[Shown]:
    if result.valid:
        yield f"The history is whole: {result.records} records from number {result.begins_at} on."
    else:
        yield f"The history was changed: first at record {result.first_bad}, {result.problem}."


@owner_operation(
    "history.verify",
    effect=Effect.OBSERVE,
    where="terminal",
    text=_text,
    exit_code=lambda result: 0 if result.valid else 1,
    deadline_s=None,
    examples=[Example("Check the whole chain.", {})],
)
async def history_verify(ctx: Context) -> Verified:
    """Check that the whole history is what was written; the exit code is 1 when it is not."""
    from computer_linker.audit.history import HistoryFolder
    from computer_linker.audit.views import Question, answer_now

    folder = ctx.services.home / "audit"
    if not HistoryFolder.exists(folder):
        raise NotFound("there is no history yet", hint="computer-linker start FOLDER begins one")
    return Verified.from_wire(await to_thread.run_sync(answer_now, HistoryFolder(folder), Question("verify", None)))
