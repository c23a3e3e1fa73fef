"""proof.attach: a file or a text, kept as evidence."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.envelope import Call
from computer_linker.operations.artifact.answer import KeptArtifact
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.run_for_owner import only_scope, run_for_owner, scope_of_file


class AttachInput(Model):
    file: Annotated[str | None, Field(description="A file inside a scope, by its whole path.")] = None
    text: Annotated[str | None, Field(description="Keep this text instead of a file.")] = None
    kind: Annotated[str | None, Field(description="screenshot, console_logs, document, ...; else inferred.")] = None
    scope: Annotated[str | None, Field(description="Where to keep it.")] = None
    owner: Annotated[str | None, Field(description="A label: an issue, a pull request, a run.")] = None
    title: Annotated[str | None, Field(description="What to call it.")] = None


@owner_operation(
    "proof.attach",
    did="kept as evidence[ {file}]",
    effect=Effect.CHANGE,
    where="service",
    is_derived=False,
    examples=[Example("Keep a log.", {"input": {"file": "/home/me/app/build.log", "owner": "pr-7"}}, runs=False)],
)
async def proof_attach(ctx: Context, input: AttachInput) -> KeptArtifact:
    """Keep a copy of a file, or of a text, as evidence."""
    config, target = ctx.services.config, None
    if (input.file is None) is (input.text is None):
        raise InvalidRequest("Give either a file or a text.")
    if input.file is None:
        scope = only_scope(config, input.scope, "folder", ("artifact:write",))
    else:
        scope, target = scope_of_file(config, Path(input.file), input.scope)
    given = {"kind": input.kind, "owner": input.owner, "title": input.title, "text": input.text}
    return await run_for_owner(ctx, Call(scope, "artifact.attach", target, given), KeptArtifact)
