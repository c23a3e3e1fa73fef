"""What the browser operations share: the scope's rules, the caller's browser, artifacts, and warnings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from pydantic import Field

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.kinds import ProofKind
from computer_linker.artifacts.store import MAX_BYTES, Owner
from computer_linker.errors import InvalidRequest
from computer_linker.operations.artifact.answer import ArtifactFacts, facts
from computer_linker.policy.engine import holds
from computer_linker.providers.browser.browsers import PROGRAM, Browsers
from computer_linker.providers.browser.session import Command, Session
from computer_linker.providers.processes.prepare import CommandRequest
from computer_linker.providers.processes.request import request_of
from computer_linker.registry import Capability, Context, Model

Ref = Annotated[str, Field(description="A reference from browser.snapshot, such as e12.k3f9.")]
OwnerLabel = Annotated[str | None, Field(max_length=120, description="A free label: an issue, a pull request, a run.")]


class KeptInput(Model):
    owner: OwnerLabel = None


class PageFile(Model):
    url: str
    artifact: ArtifactFacts


def request(ctx: Context, *command: str) -> CommandRequest:
    """An agent-browser command as a request to the scope's command policy."""
    return request_of(ctx, ".", [PROGRAM, *command], {})


@asynccontextmanager
async def page_of(ctx: Context, *commands: Command) -> AsyncIterator[Session]:
    """This caller's browser while the body runs, once the scope's rules have allowed the commands."""
    browsers = ctx.use(Browsers)
    await browsers.judge(request(ctx), *commands)
    session = browsers.find(ctx.scope, ctx.principal)
    ctx.boundary = session.boundary
    async with session.busy:
        try:
            yield session
        finally:
            warn_of_refusals(ctx, session)


def warn_of_refusals(ctx: Context, session: Session) -> None:
    """Warn of requests of the page that were refused."""
    refused = session.gate.taken_refusals() if session.gate is not None else []
    if refused:
        ctx.note(refusedAddresses=len(refused))
        ctx.warn("The page asked for addresses it may not have: " + "; ".join(refused[:5]))


def may_keep(ctx: Context) -> bool:
    """True when this caller may store artifacts in this scope."""
    return holds(ctx.principal, ctx.scope, Capability.ARTIFACT_WRITE)


async def keep(ctx: Context, content: bytes, kind: ProofKind, title: str, label: str | None = None) -> ArtifactFacts:
    """Store something the browser produced."""
    owner = Owner(ctx.scope.id, ctx.principal.id, ctx.principal.session, ctx.operation_id, label or "", PROGRAM)
    kept = await ctx.use(ArtifactBroker).keep(content, kind, title[:200], owner)
    ctx.note(artifact=kept.id, kind=kept.kind, bytes=kept.size, sha256=kept.sha256)
    return facts(kept)


async def made(ctx: Context, session: Session, name: str, command: Command) -> bytes:
    """Have the browser write one file of the page, and read it. Refused where the page shows a secret, before or after."""
    await session.refuse_shown()
    await session.ask(command, timeout_s=60)
    return await session.collect(name, MAX_BYTES)


def checked_ref(target: str) -> str:
    if not 0 < len(target) <= 40:
        raise InvalidRequest("`target` is not a reference.", field="target")
    return target
