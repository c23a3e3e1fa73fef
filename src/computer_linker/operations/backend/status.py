"""backend.status: which programs here can make proof, of which kinds, and which would be used."""

from typing import Annotated, Any

from pydantic import Field

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.store import Filter
from computer_linker.providers.backends.definition import Backend
from computer_linker.providers.backends.found import Preference, choose, discover, local_fallback, matrix
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_LOOKED_AT = 50


class BackendFacts(Model):
    name: str
    style: str
    available: bool
    state: Annotated[str, Field(description="installed, ready, needs_setup, stale, unknown or missing.")]
    detail: str
    supported_kinds: list[str]
    process_health: Annotated[str | None, Field(description="healthy, stale or unknown, where the program tells.")]
    policy_touchpoints: Annotated[
        list[str], Field(description="The capabilities and policy fields that decide over it.")
    ]


class Chosen(Model):
    name: str | None
    source: Annotated[str, Field(description="artifact, policy, available, fallback or none.")]


class BackendStatus(Model):
    backends: list[BackendFacts]
    local_fallback: BackendFacts
    matrix: Annotated[
        dict[str, Any],
        Field(description="For each kind: the backends that make it, our own desktop, and which is used."),
    ]
    preferred: Chosen


@operation(
    "backend.status",
    did="looked at the backends",
    needs={Capability.ARTIFACT_READ},
    effect=Effect.OBSERVE,
    on="any",
    examples=[Example("What can make a screenshot here?", {})],
)
async def backend_status(ctx: Context) -> BackendStatus:
    """Say which other programs (Ghost OS, agent-browser, cua-driver, Peekaboo) are here, and what our own desktop can prove."""
    # Resolved outside any sandbox, so never a program that a scope could have put on the PATH.
    find = ctx.use(Preparation).locate
    backends, local = await discover(ctx.computer, find), local_fallback(ctx.computer, find)
    newest = await ctx.use(ArtifactBroker).listed(Filter(ctx.scope.id, principal=ctx.principal.id), _LOOKED_AT)
    policy = ctx.scope.policy
    if policy.preferred_backend not in (None, *(backend.name for backend in backends)):
        ctx.warn(
            f"The policy's preferredBackend {policy.preferred_backend!r} is not a backend that this service knows."
        )
    latest = next((artifact.backend for artifact in newest if artifact.backend), None)
    preference = Preference(latest, policy.preferred_backend, policy.allow_local_fallback)
    name, source = choose(backends, preference)
    if name is None and local.available and preference.allows_fallback:
        name, source = local.name, "fallback"
    if name is not None and not any(one.name == name and one.available for one in (*backends, local)):
        ctx.warn(f"{name} made the latest artifact here, and is not ready now.")
    return BackendStatus(
        backends=[_facts(backend) for backend in backends],
        local_fallback=_facts(local),
        matrix=matrix(backends, local, preference),
        preferred=Chosen(name=name, source=source),
    )


def _facts(backend: Backend) -> BackendFacts:
    return BackendFacts(
        name=backend.name,
        style=backend.style,
        available=backend.available,
        state=backend.state,
        detail=backend.detail,
        supported_kinds=list(backend.kinds),
        process_health=backend.health,
        policy_touchpoints=list(backend.touchpoints),
    )
