"""file.undo: take a file operation back."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.files import Change, MakeFolder, Move, Remove
from computer_linker.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, PathOutOfScope
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import check_name, rules_of
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes
from computer_linker.undo.journal import LAST, Record, UndoJournal
from computer_linker.undo.steps import changes_of


class UndoInput(Model):
    operation_id: Annotated[
        str | None,
        Field(
            min_length=1, max_length=64, description="Of the operation to take back, or its end; `last` is your newest."
        ),
    ] = None
    last: Annotated[bool, Field(description="Take back your newest change in this scope.")] = False


class UndoOptions(Model):
    dry_run: Annotated[bool, Field(description="Only say what would be done.")] = False


class UndoneFile(Model):
    path: str
    action: Annotated[str, Field(description="removed, restored, or moved")]


class Undone(Model):
    op: Annotated[str, Field(description="The operation that was taken back.")]
    operation_id: str
    files: list[UndoneFile]


@operation(
    "file.undo",
    did="took back the change of {putBack}",
    needs={Capability.FS_WRITE},
    effect=Effect.CHANGE,
    text=shapes.UNDONE,
    destructive=True,
    shows="changes",
    examples=[
        Example("Take a write back.", {"input": {"operationId": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}}, runs=False),
        Example("Take back your newest change.", {"input": {"operationId": "last"}}, runs=False),
        Example(
            "Show what taking back the newest change of a file would do.",
            {"target": "notes.txt", "options": {"dryRun": True}},
            runs=False,
        ),
    ],
)
async def file_undo(
    ctx: Context, target: str | None = None, input: UndoInput = UndoInput(), options: UndoOptions = UndoOptions()
) -> Undone:
    """Take one of your file operations in this scope back: by its id, `last` for your newest, or the path it changed.

    The whole operation is taken back. Answers `conflict`, and changes nothing, when a file has changed since. An undo has its
    own id and can itself be taken back by it; a repeated `last` goes further back. What others did only the owner takes back.
    """
    journal = ctx.use(UndoJournal)
    record = _chosen(ctx, journal, target, input)
    changes = changes_of(record.steps, lambda root, parts: _rooted(ctx, root, parts))
    shown = [_shown(change) for change in changes]
    ctx.note(files=len(changes), undone=record.operation_id, path=shown[0] if shown else None)
    try:
        done = await ctx.change(changes, dry_run=options.dry_run)
    except (NotFound, AlreadyExists) as error:
        # Missing, or existing again: to an undo both mean that the file was changed since.
        raise Conflict(f"Nothing was taken back: {error.message}", **error.details) from error
    if not options.dry_run:
        journal.forget(record.operation_id)
        journal.refit(ctx.operation_id)
    files = [UndoneFile(path=path, action=_action(change)) for path, change in zip(shown, changes, strict=True)]
    # A folder that is there already is none of what was taken back.
    kept = [file for file, change in zip(files, done, strict=True) if change.action != "unchanged"] if done else files
    once = {(file.path, file.action): file for file in kept}
    return Undone(op=record.op, operation_id=record.operation_id, files=list(once.values()))


def _chosen(ctx: Context, journal: UndoJournal, target: str | None, input: UndoInput) -> Record:
    """The operation that the request names: by its id, or the newest, of a path where one is given."""
    named = None if input.operation_id == LAST else input.operation_id
    if named is not None and input.last:
        raise InvalidRequest("Give `operationId` or `last`, not both.", field="last")
    if named is None and target is None and not input.last and input.operation_id is None:
        raise InvalidRequest(
            "Name what to take back: the path that was changed as target, or input.operationId with the operation's id "
            "or `last`.",
            field="operationId",
        )
    if target is None:
        return journal.find(named or LAST, ctx.scope.id, ctx.principal)
    path = ctx.path(target)
    if named is None:
        try:
            return journal.find_change_of(path, ctx.scope.id, ctx.principal)
        except NotFound:
            if target != LAST:
                raise
            # No file of that name was changed: it can only mean the newest change.
            return journal.find(LAST, ctx.scope.id, ctx.principal)
    record = journal.find(named, ctx.scope.id, ctx.principal)
    if not record.concerns(path):
        raise NotFound(f"This operation did not change {path.shown}.", path=path.shown)
    return record


def _rooted(ctx: Context, root: str, parts: list[str]) -> RootedPath:
    """A journal's path under the scope's current rules: an undo never does what the scope forbids."""
    if root not in ctx.scope.roots:
        raise PathOutOfScope("The folder this operation changed does not belong to the scope any more.")
    index = ctx.scope.roots.index(root)
    prefix = f"{ctx.scope.root_names[index]}:" if index or ctx.cwd else ""
    path = RootedPath(root, tuple(parts), rules_of(ctx.scope, root, ctx.services.config), prefix)
    if not path.parts:
        raise InvalidRequest("The scope's root itself cannot be changed.")
    check_name(path, for_writing=True)
    return path


def _shown(change: Change) -> str:
    return change.destination.shown if isinstance(change, Move) else change.path.shown


def _action(change: Change) -> str:
    match change:
        case Remove():
            return "removed"
        case Move():
            return "moved"
        case MakeFolder():
            return "created" if change.mode is None else "restored"
        case _:
            return "restored"
