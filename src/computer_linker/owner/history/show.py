"""history.show: everything that is known of one operation."""

import re
import shlex
from collections.abc import Iterator
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.audit.history import History, HistoryFolder
from computer_linker.audit.redact import is_digest
from computer_linker.audit.wording import approval_phrase, described
from computer_linker.errors import NotFound
from computer_linker.model.history import HistoryEvent
from computer_linker.model.times import local
from computer_linker.owner.history.evidence import Stored, diff_of, stored_of
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, Shown, Table, owner_operation
from computer_linker.service.changing_config import changed_lines, kept_config_changes

_HIDDEN = ("number", "summary", "approval")
_BY_RULES = ("permission_denied", "path_out_of_scope")
"""Refusals that follow from the rules of a scope."""


class ShowInput(Model):
    operation: Annotated[
        str,
        Field(description="The operation's id: short as the table shows it, its beginning, or all of it."),
        Positional("ID"),
    ]


class OperationDetails(Model):
    event: HistoryEvent
    who: str
    what: str
    outcome: str
    approval: Annotated[str | None, Field(description="Who approved or denied it, where, and for how much.")]
    steps: Annotated[list[HistoryEvent], Field(description="What a batch ran.")]
    undoable: bool
    diff: Annotated[list[str], Field(description="What it changed, where undo has kept what was there before.")]
    stored: Annotated[Stored | None, Field(description="The process or agent session, with the output that is kept.")]
    advice: str | None
    commands: Annotated[list[str], Field(description="What can be done.")]


def _text(result: OperationDetails) -> Iterator[Shown]:
    event = result.event
    yield f"{result.who}: {result.what}"
    yield f"{result.outcome}" + (f" ({result.approval})" if result.approval else "")
    yield ""
    shown = {**event, "startedAt": local(event["startedAt"])}
    rows = [(_words(name), str(value)) for name, value in shown.items() if value is not None and name not in _HIDDEN]
    facts = [(_words(name), str(value)) for name, value in event["summary"].items() if value is not None]
    # The digest of a value says nothing beside the value.
    yield Table([*rows, *(fact for fact in facts if not (result.diff and is_digest(fact[1])))])
    for title, lines in (
        ("Steps", [f"  {plain.id}  {plain.what}  {plain.outcome}" for plain in map(described, result.steps)]),
        ("Changes", [f"  {line}" for line in result.diff]),
        ("Output", [f"  {line}" for line in (result.stored.output.splitlines() if result.stored else [])]),
    ):
        if lines:
            yield ""
            yield title
            yield from lines
    if result.stored is not None:
        yield f"{result.stored.kind} {result.stored.id}: {result.stored.status}"
    if result.advice:
        yield ""
        yield result.advice
    if result.commands:
        yield ""
        yield from (f"$ {command}" for command in result.commands)


@owner_operation(
    "history.show",
    effect=Effect.OBSERVE,
    text=_text,
    examples=[Example("All of one operation.", {"input": {"operation": "01KA00000000000000000000AA"}}, runs=False)],
)
async def history_show(ctx: Context, input: ShowInput) -> OperationDetails:
    """Show everything of one operation: who, what, its approval, what it changed, what it printed, and what can be done."""
    from computer_linker.audit.history import find_event, steps_of
    from computer_linker.audit.replay import advice_on
    from computer_linker.audit.store import AuditStore

    folder = ctx.services.home / "audit"
    history: History | None = ctx.services.peek(AuditStore)
    if history is None:
        if not HistoryFolder.exists(folder):
            raise NotFound("there is no history yet", hint="computer-linker start FOLDER begins one")
        history = HistoryFolder(folder)
    await to_thread.run_sync(history.index.catch_up)
    event = await to_thread.run_sync(find_event, history, input.operation)
    steps = await to_thread.run_sync(steps_of, history, event["operationId"])
    diff = await diff_of(ctx, event["operationId"])
    undoable = diff is not None or event["operationId"] in kept_config_changes(ctx.services.home)
    stored = await stored_of(ctx, event)
    plain = described(event)
    return OperationDetails(
        event=event,
        who=plain.who,
        what=plain.what,
        outcome=plain.outcome,
        approval=approval_phrase(event),
        steps=steps,
        undoable=undoable,
        diff=diff if diff is not None else changed_lines(ctx.services.home, event["operationId"]),
        stored=stored,
        advice=advice_on(event),
        commands=_commands(event, stored, undoable=undoable),
    )


def _commands(event: HistoryEvent, stored: Stored | None, *, undoable: bool) -> list[str]:
    found = [f"computer-linker undo {event['operationId']}"] if undoable else []
    if stored is not None:
        found.append(stored.command)
    entry = event["summary"].get("entry")
    if isinstance(entry, str) and not is_digest(entry):
        # A host that the network gate refused.
        found.append(shlex.join(["computer-linker", "scope", "allow-host", event["scope"], entry]))
    if event["scope"] and event["errorCode"] in _BY_RULES:
        found.append(shlex.join(["computer-linker", "scope", "show", event["scope"]]))
    if event["session"] and not (event["principal"] or "").startswith("cli:"):
        found.append(shlex.join(["computer-linker", "history", "--query", f"session:{_in_quotes(event['session'])}"]))
    if event["approval"] is not None:
        found.append(f"computer-linker history show {event['approval']['answer']}")
    return found


def _words(name: str) -> str:
    """A field's name as a person reads it: `started at` for `startedAt`."""
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f" {found[0].lower()}", name)


def _in_quotes(value: str) -> str:
    """A value as a history query takes it: in quotes where it would end at a space."""
    return value if re.fullmatch(r"[\w.:/@+-]+", value) else f'"{value}"'
