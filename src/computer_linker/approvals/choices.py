"""The answers that a request can get: what each would cover, as text, and what of the last 30 days it would have."""

import re
import shlex
from datetime import UTC, datetime, timedelta
from posixpath import normpath
from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field

from computer_linker.approvals.request import ApprovalRequest
from computer_linker.approvals.standing import MINUTES, Standing, extents_of, is_beneath, standing_of
from computer_linker.audit.command_line import command_preview
from computer_linker.audit.pages import MAX_LIMIT, page
from computer_linker.audit.query import Filter
from computer_linker.audit.redact import label
from computer_linker.audit.store import AuditStore
from computer_linker.model.base import Model
from computer_linker.model.event import Approval
from computer_linker.model.history import HistoryEvent
from computer_linker.policy.visible_text import escaped
from computer_linker.services import Services

DAYS = 30
_MAX_EVENTS = 2000
_EXAMPLES = 3
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_SHELL = re.compile(r"[;&|<>`$()\n]")
"""Signs of a shell's line, which is covered whole or not at all."""
_UNSAID = Approval("yes", "", "terminal", "")


class Choice(Model):
    """One answer to a request, beside once and no."""

    answer: Literal["same", "shape"]
    covers: Annotated[str, Field(description="What it would cover from now on.")]
    matched: Annotated[
        int | None, Field(description="How many of this client's events of the last 30 days it would have covered.")
    ] = None
    examples: Annotated[list[str], Field(description="Some of them.")] = []

    @property
    def text(self) -> str:
        """What it would cover and have covered, for a person."""
        if self.matched is None:
            return self.covers
        such = f", such as: {'; '.join(self.examples)}" if self.examples else ""
        return f"{self.covers}. In the last {DAYS} days: {self.matched}{such}"


async def choices_of(services: Services, asked: ApprovalRequest) -> list[Choice]:
    """The standing answers of a request. The history is read in a worker thread."""
    offered = [(extent, standing_of(asked, extent, MINUTES, _UNSAID)) for extent in extents_of(asked)]
    events = await _past(services, asked) if offered and _has_facts(asked) else None
    return [_choice(asked, extent, standing, events) for extent, standing in offered]


def _choice(
    asked: ApprovalRequest,
    extent: Literal["same", "shape"],
    standing: Standing,
    events: list[HistoryEvent] | None,
) -> Choice:
    if events is None:
        return Choice(answer=extent, covers=standing.text)
    matched = [event for event in events if _matches(event, asked, standing)]
    shown = dict.fromkeys(_shown(event) for event in matched)
    return Choice(answer=extent, covers=standing.text, matched=len(matched), examples=list(shown)[:_EXAMPLES])


async def _past(services: Services, asked: ApprovalRequest) -> list[HistoryEvent]:
    """The events of this operation, scope and client in the last 30 days, the newest first."""
    store = services.use(AuditStore)
    found = Filter()
    found.add("scope = ? AND op = ? AND principal = ?", asked.scope, asked.op, label(asked.principal, store.key))
    if asked.client is not None:
        found.add("client = ?", label(asked.client, store.key))
    found.add("at >= ?", (datetime.now(UTC) - timedelta(days=DAYS)).strftime("%Y-%m-%dT%H:%M:%S"))

    def read() -> list[HistoryEvent]:
        store.index.catch_up()
        events: list[HistoryEvent] = []
        cursor: str | None = None
        while len(events) < _MAX_EVENTS:
            one = page(store.index, found, newest_first=True, limit=MAX_LIMIT, cursor=cursor, running=store.is_running)
            events += one.events
            cursor = one.next_cursor
            if cursor is None:
                break
        return events

    return await to_thread.run_sync(read)


def _has_facts(asked: ApprovalRequest) -> bool:
    """Whether the history keeps by what it can be matched: a path or a command line, not a place on the screen."""
    return asked.about is not None and bool(asked.about.argv or asked.about.paths)


def _matches(event: HistoryEvent, asked: ApprovalRequest, standing: Standing) -> bool:
    """Whether this would have covered an event, by what the history keeps: its target, and its masked command line."""
    assert asked.about is not None
    target, line = normpath(event["target"] or "."), event["commandPreview"] or ""
    if standing.extent == "same":
        is_same_line = not asked.about.argv or line == command_preview(asked.about.argv)
        return is_same_line and target in asked.about.paths
    words = command_preview(standing.words) if standing.words else ""
    has_words = not words or line == words or (line.startswith(words + " ") and _is_longer(standing, line, words))
    return has_words and is_beneath(target, standing.folder)


def _is_longer(standing: Standing, line: str, words: str) -> bool:
    """Whether a longer command line is one that it covers."""
    if _SHELL.search(_QUOTED.sub("", line)):
        return False
    try:
        return standing.covers_further(shlex.split(line[len(words) :]))
    except ValueError:
        # A masked or cut line may have an open quote.
        return False


def _shown(event: HistoryEvent) -> str:
    what = event["commandPreview"] or event["target"] or event["op"]
    return escaped(f"{event['startedAt'][:10]} {what[:80]}")
