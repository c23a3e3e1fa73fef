"""undo: take back a change, of the config by a command or of files by any client."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from computer_linker.audit.history import matching
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.model.envelope import Call
from computer_linker.model.ids import short_id
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, Shown, owner_operation
from computer_linker.service.changing_config import kept_config_changes, newest_config_change, undo_config_change

if TYPE_CHECKING:
    from computer_linker.undo.journal import Record

_LAST = "last"


class UndoInput(Model):
    operation: Annotated[
        str,
        Field(
            description="The operation's id, short as the history shows it or whole; a path, for its newest change that was "
            "not taken back; "
            "or `last`, for the newest change of any client."
        ),
        Positional("ID|PATH|last"),
    ]
    yes: Annotated[bool, Field(description="Undo it also where clients may then do more than now.")] = False


class UndoneFile(Model):
    path: str
    action: Annotated[str, Field(description="removed, restored, created or moved")]


class Undone(Model):
    undone: str
    scope: Annotated[str | None, Field(description="Whose files were put back; null for the config.")] = None
    files: list[UndoneFile] = []
    changes: Annotated[list[str], Field(description="What is different in the config now, a line for each field.")] = []


def _text(result: Undone) -> Iterator[Shown]:
    if result.scope is None:
        yield f"The config is as it was before {result.undone}."
        yield from result.changes
        yield f"What that was: computer-linker history show {result.undone}"
        return
    yield f"Took back {result.undone} in {result.scope}."
    for file in result.files:
        yield f"{file.action} {file.path}"


@owner_operation(
    "undo",
    did="took back the change of {putBack}",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=_text,
    examples=[
        Example("Take back a change.", {"input": {"operation": "01KA00000000000000000000AA"}}, runs=False),
        Example("Take back the newest change of a file.", {"input": {"operation": "notes.txt"}}, runs=False),
    ],
)
async def undo(ctx: Context, input: UndoInput) -> Undone:
    """Take back a change: the config or the files are again what they were. Refused when they were changed since."""
    from computer_linker.undo.journal import UndoJournal
    from computer_linker.undo.steps import recover

    if ctx.services.peek(UndoJournal) is None:
        # Without a service: changes that a crash interrupted are restored first.
        await recover(ctx.use(UndoJournal), ctx.computer.files)
    config = kept_config_changes(ctx.services.home)
    files = {record.operation_id: record for record in ctx.use(UndoJournal).undoable()}
    wanted = await _newest(ctx, files) if input.operation == _LAST else _meant(input.operation, files, config)
    ctx.note(undone=wanted)
    if wanted in files:
        return await _undo_files(ctx, wanted, files[wanted].scope_id)
    if wanted not in config:
        # The history would mask a whole id as it masks what may be a secret.
        is_id = len(wanted) == len(ctx.operation_id) and wanted.isupper()
        name = short_id(wanted) if is_id else wanted[:80]
        raise NotFound(
            "There is nothing kept to undo." if input.operation == _LAST else f"There is nothing kept to undo {name}.",
            hint="the newest changes of files and of the config are kept: computer-linker history",
        )
    ctx.note(config=True)
    changes = await undo_config_change(ctx.services.home, wanted, ctx.operation_id, is_agreed=input.yes)
    ctx.effect = "confirmed"
    return Undone(undone=wanted, changes=changes)


def _meant(given: str, files: dict[str, "Record"], config: list[str]) -> str:
    """The operation that is meant: by its id, or as the newest change of a path."""
    found = matching(given, [*files, *config])
    if len(found) > 1:
        raise InvalidRequest(
            f"Several changes have the id {given[:40]!r}: {', '.join(found[:8])}.", hint="name one in full"
        )
    if found:
        return found[0]
    # An undo is taken back by its id only: of a path, the next older change is meant.
    changes = {key: record for key, record in files.items() if record.op != "file.undo"}
    places = {place: key for key, record in changes.items() for place in _places(record) if _is_meant(given, place)}
    if len(places) > 1:
        raise InvalidRequest(
            f"Several files were changed of that name: {', '.join(sorted(places)[:8])}.", hint="give its path"
        )
    return next(iter(places.values()), given)


def _places(record: "Record") -> list[str]:
    paths = [(step["root"], step["path"]) for step in record.steps]
    paths += [(step["toRoot"], step["to"]) for step in record.steps if "to" in step]
    return ["/".join((root.rstrip("/"), *parts)) for root, parts in paths]


def _is_meant(given: str, place: str) -> bool:
    path = given.removeprefix("./")
    return place == path or (not path.startswith("/") and place.endswith(f"/{path}"))


async def _newest(ctx: Context, files: dict[str, "Record"]) -> str:
    """The newest change that can be undone: not a config that was changed since, nor files of a scope that is gone."""
    config = await newest_config_change(ctx.services.home)
    scopes = {scope.id for scope in ctx.services.config.scopes} if files else set()
    here = (one.operation_id for one in files.values() if one.op != "file.undo" and one.scope_id in scopes)
    return max([config or "", *here])


async def _undo_files(ctx: Context, operation_id: str, scope: str) -> Undone:
    from computer_linker.operations.file import undo as client
    from computer_linker.service.run_for_owner import run_for_owner

    done = await run_for_owner(ctx, Call(scope, "file.undo", input={"operationId": operation_id}), client.Undone)
    files = [UndoneFile(path=file.path, action=file.action) for file in done.files]
    ctx.note(files=len(files), path=files[0].path if files else None)
    return Undone(undone=operation_id, scope=scope, files=files)
