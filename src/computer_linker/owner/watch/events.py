"""watch.events: the history's records as they are written."""

import json
import time
from typing import Annotated, Any

from pydantic import Field

from computer_linker.audit.store import AuditStore
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.pause import Pausing
from computer_linker.model.times import shown_s
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation

_MOST = 200


class EventsInput(Model):
    after: Annotated[int | None, Field(ge=0, description="The number of the newest record that is known.")] = None
    wait_seconds: Annotated[float, Field(ge=0, le=60, description="How long to wait for another one.")] = 0


class LiveEvents(Model):
    number: Annotated[int, Field(description="The number of the newest record.")]
    records: Annotated[
        list[dict[str, Any]], Field(description="Intents, outcomes and whole records, as the history keeps them.")
    ]
    missed: Annotated[int, Field(description="How many older ones there were that are not in this answer.")]
    running: Annotated[list[str], Field(description="The operations that have begun and not ended, the newest last.")]
    paused: Annotated[bool, Field(description="Every client is refused.")]
    paused_until: Annotated[str | None, Field(description="When that ends by itself.")] = None


@owner_operation(
    "watch.events",
    effect=Effect.OBSERVE,
    where="service",
    is_derived=False,
    deadline_s=None,
    examples=[Example("What was there last.", {})],
)
async def watch_events(ctx: Context, input: EventsInput = EventsInput()) -> LiveEvents:
    """Return the records after a known one, as soon as there are any."""
    store = ctx.use(AuditStore)
    feed = store.feed
    if input.after is not None:
        await feed.changed(input.after, _until_unpaused(ctx.use(Dispatcher).pause.now, input.wait_seconds))
    fresh = [] if input.after is None else feed.since(input.after)
    pause = ctx.use(Dispatcher).pause.now
    return LiveEvents(
        number=feed.number,
        records=[json.loads("{" + record + "}") for record in fresh[-_MOST:]],
        missed=max(0, len(fresh) - _MOST),
        running=sorted(store.running)[-_MOST:],
        paused=pause is not None,
        paused_until=None if pause is None or pause.until is None else shown_s(pause.until),
    )


def _until_unpaused(pause: Pausing | None, wait_s: float) -> float:
    """How long to wait: a pause that ends by itself leaves no record, so the wait ends with it."""
    return wait_s if pause is None or pause.until is None else min(wait_s, max(0.0, pause.until - time.time()) + 0.01)
