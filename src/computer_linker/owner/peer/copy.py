"""peer.copy: a file to or from another computer."""

from typing import Annotated

from pydantic import Field

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import InvalidRequest
from computer_linker.model.envelope import Call, error_in
from computer_linker.registry.owner import Context, Effect, Example, Model, Named, Positional, owner_operation

_HINTS = {
    "already_exists": "--overwrite replaces it",
    "not_found": "--parents makes the folders that are missing at the destination",
}
_END = "SCOPE:PATH here, or COMPUTER/SCOPE:PATH."


class CopyInput(Model):
    source: Annotated[str, Field(description=_END), Positional()]
    destination: Annotated[str, Field(description=_END), Positional()]
    overwrite: Annotated[bool, Field(description="Replace a file that is there.")] = False
    create_parents: Annotated[
        bool, Field(description="Make the folders above it that are missing."), Named("--parents")
    ] = False


class Copied(Model):
    from_: Annotated[str, Field(alias="from")]
    to: str


@owner_operation(
    "peer.copy",
    did="copied between computers[, from {source} to {destination}]",
    effect=Effect.CHANGE,
    where="service",
    deadline_s=None,
    text=lambda result: [f"{result.from_} is now {result.to}"],
    examples=[
        Example("Fetch a file.", {"input": {"source": "laptop/app:a.txt", "destination": "app:a.txt"}}, runs=False)
    ],
)
async def peer_copy(ctx: Context, input: CopyInput) -> Copied:
    """Copy a file to or from another computer, and show how far it is."""
    (from_scope, path), (to_scope, wanted) = _place(input.source), _place(input.destination)
    given = {"destination": wanted}
    if "/" in to_scope:
        scope, given["destinationScope"] = from_scope, to_scope
    elif "/" in from_scope:
        scope, given["sourceScope"] = to_scope, from_scope
    else:
        raise InvalidRequest(
            "One side is another computer: COMPUTER/SCOPE:PATH.", hint="within one scope: op file.copy"
        )
    ctx.note(source=from_scope, destination=to_scope)
    options = {"overwrite": input.overwrite, "createParents": input.create_parents}
    reply = await ctx.use(Dispatcher).call(
        Call(scope, "file.copy", path, given, options), ctx.principal, ctx.report, parent=ctx.operation_id
    )
    if not reply.ok:
        error = error_in(reply.envelope)
        raise type(error)(f"{error.code}: {error.message}", **{"hint": _HINTS.get(error.code), **error.details})
    ctx.effect = reply.envelope.get("effect")
    ctx.note(operation=str(reply.envelope["operationId"]))
    moved = reply.envelope["data"]
    return Copied(from_=moved.from_, to=moved.to)


def _place(word: str) -> tuple[str, str]:
    scope, colon, path = word.partition(":")
    if not colon or not scope or not path:
        raise InvalidRequest(f"{word[:200]} is no place.", hint="write SCOPE:PATH, or COMPUTER/SCOPE:PATH")
    return scope, path
