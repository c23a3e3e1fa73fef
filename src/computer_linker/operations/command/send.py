"""command.send: type into a running process."""

from typing import Annotated

from pydantic import Field, model_validator

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.providers.processes.keys import key_bytes
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.providers.processes.waiting import Waiting
from computer_linker.registry import Context, Example, operation


class SendInput(Model):
    text: Annotated[
        str | None, Field(max_length=100_000, description="Text to type; a line end in it is Enter (in JSON: \\n).")
    ] = None
    key: Annotated[str | None, Field(max_length=40, description="A key: enter, tab, up, f5, ctrl+c, ctrl+d …")] = None

    @model_validator(mode="after")
    def _has_one(self) -> "SendInput":
        if (self.text is None) == (self.key is None):
            raise ValueError("give either text or key")
        return self


class SendOptions(Model):
    wait_for: Annotated[
        str | None, Field(min_length=1, max_length=1000, description="A regular expression to wait for in the output.")
    ] = None
    wait_seconds: Annotated[float, Field(ge=0, le=50)] = 10


class Sent(Model):
    cursor: Annotated[int, Field(description="Read from here to see what the process answered.")]
    matched: Annotated[bool | None, Field(description="Whether `waitFor` appeared in time; null without one.")]


@operation(
    "command.send",
    needs={Capability.PROCESS_MANAGE},
    effect=Effect.CHANGE,
    boundary="scoped-metadata",
    aliases=("process.send",),
    examples=[
        Example(
            "Answer a prompt and wait for the next one.",
            {"target": "proc_0123", "input": {"text": "1 + 1\n"}, "options": {"waitFor": ">>> $"}},
            runs=False,
        )
    ],
)
async def command_send(ctx: Context, target: str, input: SendInput, options: SendOptions = SendOptions()) -> Sent:
    """Type text or a key into a process, and wait for a pattern in what it answers where asked to."""
    managed = ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id)
    data = key_bytes(input.key) if input.key is not None else _typed(input.text or "")
    cursor = managed.ring.end
    managed.send(data)
    ctx.note(bytes=len(data))
    ctx.effect = "unverifiable"
    matched = None
    if options.wait_for is not None:
        matched = await ctx.use(Waiting).until(managed, options.wait_for, cursor, options.wait_seconds)
    ctx.warnings.extend(managed.refused)
    return Sent(cursor=cursor, matched=matched)


def _typed(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest("`text` must be valid Unicode text.", field="text") from None
