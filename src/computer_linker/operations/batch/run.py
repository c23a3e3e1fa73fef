"""batch.run: several operations in one request, each checked and audited by itself."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import to_json

from computer_linker.approvals.approvals import Yes
from computer_linker.computer.facets.lines import MAX_REPLY
from computer_linker.errors import InvalidRequest, LinkError, wire_codes
from computer_linker.model.envelope import Call, Reply
from computer_linker.operations.batch.references import References, on_view, refers
from computer_linker.registry import Context, Effect, Example, Model, operation
from computer_linker.registry.context import Step

_ROOM = MAX_REPLY - 200_000


class BatchItem(Model):
    op: Annotated[str, Field(min_length=1, max_length=64)]
    scope: Annotated[str | None, Field(description="Another scope than the batch's own.")] = None
    target: Annotated[
        Any, Field(description="As for the operation alone; `$1.path` is a field of the first result.")
    ] = None
    input: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    confirm: dict[str, str] | None = None


class BatchInput(Model):
    operations: Annotated[
        list[BatchItem],
        Field(min_length=1, max_length=25, description="A string `$N.field` stands for a field of result N."),
    ]


class BatchOptions(Model):
    stop_on_error: Annotated[bool, Field(description="Leave out the rest after the first failure.")] = True
    view: Annotated[
        bool | str,
        Field(description="Run the commands of all steps on one view of the folder; steps that change it are refused."),
    ] = False


class BatchResults(Model):
    results: Annotated[list[dict[str, Any]], Field(description="One envelope an operation, in order.")]
    failed: Annotated[int, Field(description="How many of them failed; the batch is ok when none did.")] = 0
    truncated: Annotated[
        bool, Field(description="True when the answer was full before the end; what has no result here was not run.")
    ] = False


def _calls(ctx: Context, input: BatchInput, options: BatchOptions = BatchOptions()) -> list[Step]:
    """The calls of its steps. Raises InvalidRequest for a batch in a batch, or a step that cannot be on its view."""
    if any(item.op in ("batch", "batch.run") for item in input.operations):
        raise InvalidRequest("A batch cannot contain a batch.")
    found = []
    for item in on_view(ctx, input, options).operations:
        parts = [item.target, item.input, item.options]
        uses_results = any(map(refers, parts))
        target, given, chosen = parts if uses_results else map(References().filled, parts)
        found.append(Step(_call(ctx, item, target, given, chosen), uses_results, ends_all=options.stop_on_error))
    return found


@operation(
    "batch.run",
    did="ran a batch[: {does}]",
    effect=Effect.OBSERVE,
    on="any",
    boundary="mixed",
    deadline_s=None,
    aliases=("batch",),
    makes=_calls,
    examples=[
        Example(
            "Find a file and read it: the second step uses the first one's result.",
            {
                "input": {
                    "operations": [
                        {"op": "file.find", "target": ".", "input": {"pattern": "notes.*"}},
                        {"op": "file.read", "target": "$1.files.0"},
                    ]
                }
            },
        ),
        Example(
            "Look at two files at once.",
            {"input": {"operations": [{"op": "file.stat", "target": "notes.txt"}, {"op": "file.list", "target": "."}]}},
        ),
    ],
)
async def batch_run(ctx: Context, input: BatchInput, options: BatchOptions = BatchOptions()) -> BatchResults:
    """Run up to 25 operations in order. Each is checked and audited as if it had come alone.

    Where a person is asked, they are asked once, with all steps shown, before the first one runs; a step that uses results or
    works on what an earlier step made is asked about again when it is reached. Where a step must be refused anyway, they are not
    asked, and no step runs, unless `stopOnError` is false.
    It stops at the first failure unless `stopOnError` is false; when a step failed, `ok` is false and `data` has the results
    there are. A whole string `$N.field` in a step's target, input or options is replaced by that field of result N
    (`$1.files.0`, `$2.matches.0.path`, `$1.operationId`); `$1.path` also stands for the only file that a search found.
    """
    input = on_view(ctx, input, options)
    results: list[dict[str, Any]] = []
    references, room = References(), _ROOM
    for number, item in enumerate(input.operations, start=1):
        ctx.progress(f"{item.op} ({number} of {len(input.operations)})", number - 1, len(input.operations))
        yes = ctx.granted[number - 1] if ctx.granted else None
        reply, is_unusable = await _step(ctx, item, references, _steps(input.operations, number, yes), yes)
        room -= _wire_size(reply)
        results.append(reply.envelope if room >= 0 else _without_data(reply.envelope))
        references.add(reply.envelope)
        _note(ctx, results, len(input.operations))
        if room < 0 or is_unusable:
            break
        ctx.attachments.extend(reply.attachments)
        if options.stop_on_error and not reply.ok:
            break
    if room < 0:
        ctx.warn(f"The answer is full after {len(results)} of {len(input.operations)} operations; no more were run.")
    failed = _note(ctx, results, len(input.operations))
    ctx.failure = _failure(results, len(input.operations)) if failed else None
    return BatchResults(results=results, failed=failed, truncated=room < 0)


def _note(ctx: Context, results: list[dict[str, Any]], asked: int) -> int:
    """Record how far it came, also for a batch that is stopped; return how many steps failed."""
    failed = sum(1 for result in results if not result["ok"])
    ctx.note(operations=len(results), failed=failed, steps=asked)
    return failed


async def _step(
    ctx: Context, item: BatchItem, references: References, steps: tuple[str, ...], yes: Yes | None
) -> tuple[Reply, bool]:
    """Run one step; True beside a step that was not run because it refers to nothing."""
    try:
        target, given, options = (references.filled(value) for value in (item.target, item.input, item.options))
    except InvalidRequest as error:
        return await ctx.refuse(_call(ctx, item, item.target, item.input, item.options), error), True
    return await ctx.dispatch(replace(_call(ctx, item, target, given, options), batch=steps), yes), False


def _call(ctx: Context, item: BatchItem, target: Any, given: Any, options: Any) -> Call:
    token = (item.confirm or {}).get("token")
    return Call(item.scope or ctx.scope.id, item.op, target, given, options, token)


def _failure(results: list[dict[str, Any]], asked: int) -> LinkError:
    """The first failure, as the failure of the batch."""
    step, first = next((number, result) for number, result in enumerate(results, start=1) if not result["ok"])
    error = first["error"]
    left = asked - len(results)
    rest = f" The {left} after it did not run." if left > 1 else " The one after it did not run." if left else ""
    kind = wire_codes().get(error["code"], InvalidRequest)
    return kind(f"Step {step} of {asked} ({first['op']}) failed: {error['message']}{rest}", step=step, notRun=left)


def _steps(items: list[BatchItem], number: int, yes: Yes | None) -> tuple[str, ...]:
    """All steps, for an approver who is asked about one of them."""
    changed = ", which is no longer as it was shown with the batch" if yes is not None else ""
    lines = [
        f"{'>' if at == number else ' '} {at}. {item.op} {item.target or ''}"[:200] for at, item in enumerate(items, 1)
    ]
    return (f"Step {number} of a batch of {len(items)}{changed}:", *lines)


def _wire_size(reply: Reply) -> int:
    """The bytes of a result in the batch's own reply, where it is JSON inside a JSON string."""
    body = to_json(reply.envelope, by_alias=True)
    beside = sum(len(attachment.data) for attachment in reply.attachments) * 4 // 3
    return len(body) + body.count(b'"') + body.count(b"\\") + beside


def _without_data(envelope: dict[str, Any]) -> dict[str, Any]:
    """The envelope with the operation's outcome only."""
    if not envelope["ok"]:
        return envelope
    left_out = "Its data is left out: the answer of the batch is full. Ask for it alone, or for less."
    return {**envelope, "data": None, "warnings": [*envelope["warnings"], left_out]}
