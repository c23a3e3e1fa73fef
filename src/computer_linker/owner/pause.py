"""pause: refuse every client until it ends."""

import re
from collections.abc import Iterator
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import InvalidRequest
from computer_linker.model.times import local, shown_s
from computer_linker.registry.owner import Context, Effect, Example, Model, Named, Shown, owner_operation

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class PauseInput(Model):
    lasting: Annotated[
        str | None,
        Field(description="How long: 30m, 1h, 2d; left out, until `unpause`."),
        Named("--for", metavar="TIME"),
    ] = None
    stop: Annotated[bool, Field(description="Also stop what runs for clients now.")] = False


class PauseBegun(Model):
    until: Annotated[str | None, Field(description="When it ends by itself.")]
    stopped: Annotated[int, Field(description="Calls, processes, agents and browsers of clients that were stopped.")]


def _text(result: PauseBegun) -> Iterator[Shown]:
    until = local(result.until) if result.until else "you run: computer-linker unpause"
    yield f"Every client is paused until {until}."
    if result.stopped:
        yield f"Stopped {result.stopped} of theirs that ran."


@owner_operation(
    "pause",
    did="paused every client[ {until}]",
    effect=Effect.CHANGE,
    text=_text,
    examples=[Example("An hour of quiet.", {"input": {"lasting": "1h", "stop": True}})],
)
async def pause(ctx: Context, input: PauseInput = PauseInput()) -> PauseBegun:
    """Refuse every operation of every client, over every connection, until `unpause`. It outlives the service.

    Calls that run go on unless --stop is given. `halt` is for the desktop alone.
    """
    dispatcher = ctx.use(Dispatcher)
    now = await to_thread.run_sync(dispatcher.pause.begin, _seconds(input.lasting))
    stopped = await dispatcher.stop_clients() if input.stop else 0
    ctx.effect = "confirmed" if dispatcher.pause.now == now else "partial"
    ctx.note(until=None if now.until is None else shown_s(now.until), stopped=stopped)
    return PauseBegun(until=None if now.until is None else shown_s(now.until), stopped=stopped)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if found is None or found[1] == "0":
        raise InvalidRequest(f"{text[:40]!r} is not a time such as 30m, 1h or 2d.")
    return float(found[1]) * _UNITS[found[2]]
