"""artifact.list: what is kept for this scope, the newest first."""

from typing import Annotated

from pydantic import Field

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.kinds import normalised_kind
from computer_linker.artifacts.store import Filter
from computer_linker.errors import InvalidRequest
from computer_linker.operations.artifact.answer import ArtifactFacts, Kind, Label, facts
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class ListInput(Model):
    kind: Kind = None
    owner: Label = None
    session: Annotated[str | None, Field(max_length=200, description="Only what this session left.")] = None


class ListOptions(Model):
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    cursor: Annotated[str | None, Field(max_length=40)] = None


class ArtifactPage(Model):
    artifacts: list[ArtifactFacts]
    next_cursor: str | None


@operation(
    "artifact.list",
    did="listed evidence",
    needs={Capability.ARTIFACT_READ},
    effect=Effect.OBSERVE,
    text=shapes.ARTIFACTS,
    on="any",
    examples=[Example("The newest artifacts.", {"options": {"limit": 5}})],
)
async def artifact_list(
    ctx: Context, input: ListInput = ListInput(), options: ListOptions = ListOptions()
) -> ArtifactPage:
    """List the caller's artifacts in this scope, the newest first, by kind or by the label they were given."""
    try:
        before = None if options.cursor is None else float(options.cursor)
    except ValueError:
        raise InvalidRequest("The cursor is not one that artifact.list gave.") from None
    kind = normalised_kind(input.kind) if input.kind is not None else None
    whose = None if ctx.principal.is_owner else ctx.principal.id
    wanted = Filter(ctx.scope.id, kind, input.owner, input.session, before, whose)
    found = await ctx.use(ArtifactBroker).listed(wanted, options.limit + 1)
    page = found[: options.limit]
    more = len(found) > options.limit
    return ArtifactPage(
        artifacts=[facts(item) for item in page], next_cursor=repr(page[-1].created_at) if more else None
    )
