"""What a view changed, kept as an artifact: the proof page shows it beside the operation that kept or dropped it."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.store import Owner
from computer_linker.errors import PermissionDenied
from computer_linker.policy.engine import holds
from computer_linker.providers.views.store import View
from computer_linker.registry import Capability, Context

EvidenceOption = Annotated[
    bool, Field(description="Keep the list of changes with its diff as an artifact, for the proof page.")
]


def refuse_without_right(ctx: Context, *, wanted: bool) -> None:
    """Refuse evidence, before anything is done, to a caller that may not keep artifacts."""
    if wanted and not holds(ctx.principal, ctx.scope, Capability.ARTIFACT_WRITE):
        raise PermissionDenied("Keeping evidence needs artifact:write.", missing=[Capability.ARTIFACT_WRITE.value])


async def keep_evidence(ctx: Context, view: View, act: str, lines: Sequence[str]) -> str:
    """Keep the lines that a person is shown. Returns the artifact's id."""
    text = "\n".join((f"{act}: {view.command}", f"view {view.id}, made {view.created_at}", "", *lines, ""))
    owner = Owner(ctx.scope.id, ctx.principal.id, ctx.principal.session, ctx.operation_id, "", "local")
    kept = await ctx.use(ArtifactBroker).keep(text.encode(), "view", f"What was {act}", owner)
    ctx.note(artifact=kept.id)
    return kept.id
