"""command.send: type into a running process."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from computer_linker.errors import InvalidRequest
from computer_linker.operations.command.preview import show_typed
from computer_linker.operations.command.read import USUAL_WAIT_S, WaitOptions
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.providers.processes.waiting import WaitEnd, Waiting
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_KEYS = {
    "enter": b"\r", "return": b"\r", "tab": b"\t", "escape": b"\x1b", "esc": b"\x1b", "backspace": b"\x7f", "space": b" ",
    "up": b"\x1b[A", "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D", "home": b"\x1b[H", "end": b"\x1b[F",
    "pageup": b"\x1b[5~", "pagedown": b"\x1b[6~", "insert": b"\x1b[2~", "delete": b"\x1b[3~", "shift+tab": b"\x1b[Z",
    "f1": b"\x1bOP", "f2": b"\x1bOQ", "f3": b"\x1bOR", "f4": b"\x1bOS", "f5": b"\x1b[15~", "f6": b"\x1b[17~",
    "f7": b"\x1b[18~", "f8": b"\x1b[19~", "f9": b"\x1b[20~", "f10": b"\x1b[21~", "f11": b"\x1b[23~", "f12": b"\x1b[24~",
}  # fmt: skip
"""Keys as a terminal sends them."""
_MAX_OUTPUT = 65_536


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


class SendOptions(WaitOptions):
    wait_seconds: Annotated[float, Field(ge=0, le=50, description="Wait at most this long for what is named here.")] = (
        USUAL_WAIT_S
    )


class Sent(Model):
    cursor: Annotated[int, Field(description="Read from here to see what the process answered.")]
    matched: Annotated[bool | None, Field(description="Whether `waitFor` appeared in time; null without one.")]
    waited: Annotated[WaitEnd | None, Field(description="What ended the wait; null without one.")] = None
    output: Annotated[
        str | None, Field(description="What it answered during the wait, without the echo; the end of much output.")
    ] = None
    next_cursor: Annotated[int | None, Field(description="Read from here for what comes after `output`.")] = None
    status: Literal["running", "exited", "stopped", "lost"]
    exit_code: Annotated[int | None, Field(description="Null while it runs.")] = None
    waits_for_input: Annotated[
        bool | None, Field(description="True while the program is blocked reading its input; null when unknown.")
    ] = None


@operation(
    "command.send",
    did="typed into",
    needs={Capability.PROCESS_MANAGE},
    effect=Effect.CHANGE,
    boundary="scoped-metadata",
    shows=show_typed,
    aliases=("process.send",),
    text=shapes.SENT,
    examples=[
        Example(
            "Answer a prompt and wait for the next one.",
            {"target": "proc_0123", "input": {"text": "1 + 1\n"}, "options": {"waitFor": ">>> $"}},
            runs=False,
        )
    ],
)
async def command_send(ctx: Context, target: str, input: SendInput, options: SendOptions = SendOptions()) -> Sent:
    """Type text or a key into a process. With `waitFor`, `silenceSeconds` or `untilEnd` it waits for the answer and returns it.

    The echo of what was typed is not counted as an answer.
    """
    managed = ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id)
    data = _key_bytes(input.key) if input.key is not None else _typed(input.text or "")
    if data == b"\r" and not managed.record.pty:
        # What turns Enter into a line end is a terminal; a pipe has none.
        data = b"\n"
    cursor = managed.ring.end
    managed.send(data)
    ctx.note(bytes=len(data))
    ctx.effect = "unverifiable"
    sent = Sent(cursor=cursor, matched=None, status=managed.record.status)
    until = options.until()
    if not until.is_any_output:
        waited = await ctx.use(Waiting).wait(managed, until, cursor, options.wait_seconds)
        limit = min(_MAX_OUTPUT, ctx.scope.policy.max_output_bytes)
        answer = managed.echoes.without(cursor, limit).decode("utf-8", "replace")
        matched = None if options.wait_for is None else waited == "text"
        sent = sent.model_copy(
            update={"matched": matched, "waited": waited, "output": answer, "next_cursor": managed.ring.end}
        )
    ctx.warnings.extend(managed.refused)
    record = managed.record
    ends = {"status": record.status, "exit_code": record.exit_code, "waits_for_input": managed.waits_for_input()}
    return sent.model_copy(update=ends)


def _typed(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest("`text` must be valid Unicode text.", field="text") from None


def _key_bytes(key: str) -> bytes:
    """The bytes of a key such as `enter`, `up`, `f5`, `ctrl+c` or `alt+x`."""
    name = key.strip().lower().replace("ctrl-", "ctrl+").replace("alt-", "alt+")
    if name in _KEYS:
        return _KEYS[name]
    if name.startswith("ctrl+") and len(name) == 6 and "@" <= name[5].upper() <= "_":
        return bytes([ord(name[5].upper()) & 0x1F])
    if name.startswith("alt+") and len(name) > 4:
        inner = name[4:]
        return b"\x1b" + (inner.encode() if len(inner) == 1 else _key_bytes(inner))
    raise InvalidRequest(
        f"There is no key {key[:40]!r}. Use names such as enter, tab, up, f5, ctrl+c or alt+x.", field="key"
    )
