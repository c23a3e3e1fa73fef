"""result.read: go on in an answer that was longer than the client shows."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.policy.engine import missing_capabilities
from computer_linker.providers.kept_results import KeptResults
from computer_linker.registry import Context, Effect, Example, Model, operation, shapes
from computer_linker.registry.catalog import Catalog


class ReadOptions(Model):
    start_byte: Annotated[int, Field(ge=0, description="Where to go on, named in the cut answer.")] = 0
    max_bytes: Annotated[int, Field(gt=0, le=1_000_000)] = 8_000


class ResultText(Model):
    text: str
    size: Annotated[int, Field(description="Of the whole text, in bytes.")]
    truncated: bool
    next_byte: Annotated[int | None, Field(description="Where to go on with `startByte`; null at the end.")]


@operation(
    "result.read",
    did="read a kept result",
    effect=Effect.OBSERVE,
    on="any",
    text=shapes.TEXT,
    examples=[
        Example("Read on.", {"target": "01JA0000000000000000000000", "options": {"startByte": 7000}}, runs=False)
    ],
)
async def result_read(ctx: Context, target: str, options: ReadOptions = ReadOptions()) -> ResultText:
    """Read more of an answer whose middle was left out because the client would have cut it.

    The target is the operation's id. Texts are kept for a quarter of an hour, for the caller alone, and read while the scope
    still allows the operation they came from.
    """
    kept = ctx.use(KeptResults).find(target, ctx.principal.id, ctx.scope.id)
    _check_rights(ctx, kept.op)
    whole = kept.text
    if options.start_byte > len(whole):
        raise InvalidRequest("startByte lies beyond the end.", field="options.startByte", size=len(whole))
    end = min(len(whole), options.start_byte + options.max_bytes)
    text = whole[options.start_byte : end].decode("utf-8", "ignore")
    return ResultText(
        text=text, size=len(whole), truncated=end < len(whole), next_byte=end if end < len(whole) else None
    )


def _check_rights(ctx: Context, name: str) -> None:
    op = ctx.use(Catalog).by_name.get(name)
    missing = missing_capabilities(ctx.scope, op, ctx.principal) if op is not None else []
    if missing:
        raise PermissionDenied(f"Scope {ctx.scope.id} no longer allows {name}.", missing=missing)
