"""proof.capture: a picture of the desktop, kept as evidence."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.envelope import Call
from computer_linker.operations.artifact.answer import KeptArtifact
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, ScopeId, owner_operation
from computer_linker.service.run_for_owner import only_scope, run_for_owner


class CaptureInput(Model):
    target: Annotated[
        str, Field(description="A display, or with --window or --process one of those."), Positional()
    ] = "primary"
    window: Annotated[bool, Field(description="The target is a window's id.")] = False
    process: Annotated[bool, Field(description="The target is a process's id or name.")] = False
    scope: Annotated[str | None, Field(description="Where to keep it."), ScopeId()] = None
    owner: Annotated[str | None, Field(description="A label: an issue, a pull request, a run.")] = None
    title: Annotated[str | None, Field(description="What to call it.")] = None


@owner_operation(
    "proof.capture",
    did="kept a picture as evidence",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"{result.artifact.id}  {result.artifact.kind}  {result.artifact.size} bytes"],
    examples=[Example("Keep a picture of the primary display.", {}, runs=False)],
)
async def proof_capture(ctx: Context, input: CaptureInput = CaptureInput()) -> KeptArtifact:
    """Take a picture of the desktop and keep it, masked as every capture is."""
    source = "window" if input.window else "process" if input.process else "display"
    scope = only_scope(ctx.services.config, input.scope, "computer", ("screen:capture", "artifact:write"))
    given = {"source": source, "owner": input.owner, "title": input.title}
    return await run_for_owner(ctx, Call(scope, "artifact.capture", input.target, given), KeptArtifact)
