"""code.actions: quick fixes and refactorings that a language server offers for some lines, listed or applied."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.operations.code.asking import Asking
from computer_linker.operations.code.diagnostics import diagnostics_now
from computer_linker.operations.code.edited import DryRun, EditedFile, change
from computer_linker.providers.language.text import Lines, Position, position_from, units
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class ActionsInput(Model):
    line: Annotated[int, Field(gt=0, description="The first line, from 1.")] = 1
    end_line: Annotated[int | None, Field(gt=0, description="The last line; the first when left out.")] = None
    kind: Annotated[
        str | None, Field(max_length=100, description="Only this kind, such as quickfix or source.organizeImports.")
    ] = None
    apply: Annotated[str | None, Field(max_length=500, description="Apply the action with this title.")] = None


class ActionEntry(TypedDict):
    title: str
    kind: str


class Actions(Model):
    actions: list[ActionEntry]
    files: Annotated[list[EditedFile], Field(description="What `apply` changed.")] = []
    diff: str | None = None
    engine: str


@operation(
    "code.actions",
    did="asked for fixes in",
    needs={Capability.FS_READ, Capability.FS_WRITE},
    effect=Effect.CHANGE,
    text=shapes.ACTIONS,
    shows="whole changes",
    destructive=True,
    examples=[Example("What can be fixed here.", {"target": "src/app.ts", "input": {"line": 3}}, runs=False)],
)
async def code_actions(
    ctx: Context, target: str, input: ActionsInput = ActionsInput(), options: DryRun = DryRun()
) -> Actions:
    """List the fixes and refactorings for some lines, or apply one by its title: all of its edits, or none."""
    asking = await Asking.of(ctx, target)
    asking.need("codeActionProvider", "fixes and refactorings")
    found = await _offered(asking, input)
    listed = [ActionEntry(title=str(one["title"]), kind=str(one.get("kind") or "")) for one in found]
    if input.apply is None:
        ctx.effect = "suspected_noop"
        return Actions(actions=listed, engine=asking.engine)
    chosen = [one for one in found if one["title"] == input.apply]
    if not chosen:
        raise NotFound("No action has this title there.", titles=[each["title"] for each in listed[:20]])
    edit = await _edit(asking, chosen[0])
    edits = asking.places.edits(edit, lambda name: ctx.path(name, for_writing=True))
    done = await change(asking, edits, dry_run=options.dry_run)
    return Actions(actions=[], files=done.files, diff=done.diff, engine=asking.engine)


async def _offered(asking: Asking, input: ActionsInput) -> list[dict[str, Any]]:
    """The actions that only edit files, for the lines, with the problems reported there."""
    document = await asking.server.document(asking.path)
    lines = Lines(document.text)
    last = max(input.line, input.end_line or input.line)
    if input.line > len(lines):
        raise InvalidRequest(f"The file has {len(lines)} lines.", field="input.line", lines=len(lines))
    last = min(last, len(lines))
    end = Position(last - 1, units(lines.line(last - 1), len(lines.line(last - 1))))
    span = {"start": Position(input.line - 1, 0).to_wire(), "end": end.to_wire()}
    problems = [
        each
        for each in await diagnostics_now(asking)
        if input.line - 1 <= position_from(each.get("range", {}).get("start")).line <= last - 1
    ]
    about: dict[str, Any] = {"diagnostics": problems, "triggerKind": 1}
    if input.kind is not None:
        about["only"] = [input.kind]
    found = await asking.ask("textDocument/codeAction", {"range": span, "context": about})
    listed = found if isinstance(found, list) else []
    return [one for one in listed if isinstance(one, dict) and one.get("title") and "disabled" not in one]


async def _edit(asking: Asking, action: dict[str, Any]) -> Any:
    """The edits of an action. One that runs a command of the server instead is refused."""
    if "edit" not in action and isinstance(asking.server.abilities.get("codeActionProvider"), dict):
        action = await asking.follow("codeAction/resolve", action) or {}
    if not action.get("edit"):
        raise InvalidRequest(
            "This action runs a command of the language server; only actions that edit files are applied."
        )
    return action["edit"]
