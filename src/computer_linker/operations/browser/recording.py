"""Recordings of a page with start and stop: traces, network logs and videos share one shape."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.artifacts.kinds import ProofKind
from computer_linker.artifacts.store import MAX_BYTES
from computer_linker.errors import Conflict
from computer_linker.operations.artifact.answer import ArtifactFacts
from computer_linker.operations.browser.paging import keep, page_of
from computer_linker.operations.browser.preview import show_page
from computer_linker.providers.browser.browsers import Browsers
from computer_linker.providers.browser.page import allowed
from computer_linker.providers.browser.session import Session
from computer_linker.registry import Capability, Context, Effect, Example, Model, Operation, operation

Action = Literal["start", "stop"]
_MAX_S = 300.0


@dataclass(frozen=True, slots=True)
class Recording:
    """How agent-browser starts and stops one kind of recording; `file` is its path."""

    name: str
    kind: ProofKind
    file: str
    start: tuple[str, ...]
    stop: tuple[str, ...]
    path_at: Literal["start", "stop"] = "stop"
    how: tuple[str, ...] = ()
    """Arguments after the path at the start."""

    def ending(self, file: str) -> tuple[str, ...]:
        """The command that stops it."""
        return (*self.stop, file) if self.path_at == "stop" else self.stop


class PageRecording(Model):
    status: Literal["recording", "stopped"]
    url: str
    artifact: Annotated[ArtifactFacts | None, Field(description="What was recorded, once it is stopped.")] = None


def page_recording(name: str, did: str, what: Recording) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Define an operation that starts and stops a recording."""

    async def show(ctx: Context, target: Action, input: object = None) -> Preview:
        about = await show_page(ctx, what.start if target == "start" else what.stop)
        try:
            _check_turn(what, target, ctx.use(Browsers).find(ctx.scope, ctx.principal))
        except Conflict as error:
            return replace(about, obstacle=error)
        return replace(about, lines=(f"{target}s the {what.name}", *about.lines))

    return operation(
        name,
        did=did,
        needs={Capability.COMMAND_RUN, Capability.ARTIFACT_WRITE},
        effect=Effect.CHANGE,
        boundary="sandboxed",
        deadline_s=90,
        shows=show,
        examples=[
            Example("Begin.", {"target": "start"}, runs=False),
            Example("End, and keep it.", {"target": "stop"}, runs=False),
        ],
    )


def _check_turn(what: Recording, action: Action, session: Session) -> None:
    """Refuse to start one twice, to stop one that does not run, and to record a browser that holds a secret."""
    if action == "start" and session.holds_secret:
        raise Conflict("A secret was put into a page of this browser, so nothing of it is recorded. Close it first.")
    if (action == "start") == (what.name in session.running):
        raise Conflict(f"A {what.name} is running already." if action == "start" else f"No {what.name} is running.")


async def recorded(ctx: Context, what: Recording, action: Action, label: str | None) -> PageRecording:
    """Start or stop a recording. Stopping without a start, and starting twice, are refused."""
    command = what.start if action == "start" else what.stop
    async with page_of(ctx, command) as session:
        _check_turn(what, action, session)
        (where,) = await session.ask(("get", "url"))
        url = await allowed(session, ctx.scope, where)
        file = session.place(what.file)
        ctx.effect = "confirmed"
        if action == "start":
            place = (file, *what.how) if what.path_at == "start" else ()
            await session.ask((*what.start, *place), timeout_s=60)
            session.end_after(what.name, what.ending(file), _MAX_S)
            return PageRecording(status="recording", url=url)
        session.running.pop(what.name).cancel()
        if what.name in session.over:
            session.over.discard(what.name)
            ctx.warn(f"It ended by itself after {_MAX_S:g} seconds.")
        else:
            await session.ask(what.ending(file), timeout_s=60)
        content = await session.collect(what.file, MAX_BYTES)
    kept = await keep(ctx, content, what.kind, f"{what.kind.replace('_', ' ')} of {url}", label)
    return PageRecording(status="stopped", url=url, artifact=kept)
