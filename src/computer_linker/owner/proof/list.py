"""proof.list: the evidence that is kept."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.errors import NotFound
from computer_linker.operations.artifact.answer import KeptMany, facts
from computer_linker.registry.owner import Context, Effect, Example, Model, ScopeId, Shown, Table, owner_operation


class ListInput(Model):
    scope: Annotated[str | None, Field(description="Only this scope."), ScopeId()] = None
    kind: Annotated[str | None, Field(description="Only this kind.")] = None
    owner: Annotated[str | None, Field(description="A label: an issue, a pull request, a run.")] = None
    session: Annotated[str | None, Field(description="Only what this session left.")] = None
    limit: Annotated[int, Field(ge=1, le=500, description="How many at most.")] = 50


def _text(result: KeptMany) -> Iterator[Shown]:
    if not result.artifacts:
        yield "Nothing is kept."
        return
    rows = [
        (one.id, one.kind, str(one.size), one.owner["scope"], one.owner.get("label", ""), one.title)
        for one in result.artifacts
    ]
    yield Table(rows, ("artifact", "kind", "bytes", "scope", "label", "title"))


NOTHING_KEPT = (
    "clients keep it when asked to, such as by artifact.attach; by hand: computer-linker proof attach FILE, or proof capture. "
    "What clients did without evidence: computer-linker history"
)


@owner_operation(
    "proof.list",
    effect=Effect.OBSERVE,
    where="terminal",
    text=_text,
    examples=[Example("What is kept?", {}, runs=False)],
)
async def proof_list(ctx: Context, input: ListInput = ListInput()) -> KeptMany:
    """List what is kept, the newest first."""
    from computer_linker.artifacts.kinds import normalised_kind
    from computer_linker.artifacts.store import ArtifactStore, Filter

    folder = ctx.services.home / "artifacts"
    if not (folder / "artifacts.db").is_file():
        raise NotFound("no evidence is kept yet", hint=NOTHING_KEPT)
    kind = None if input.kind is None else normalised_kind(input.kind)
    store = ArtifactStore(folder, only_to_read=True)
    try:
        found = store.listed(Filter(input.scope, kind, input.owner, input.session), input.limit)
    finally:
        store.close()
    return KeptMany(artifacts=[facts(one) for one in found])
