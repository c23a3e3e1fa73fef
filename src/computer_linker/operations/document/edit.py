"""document.edit: change a cell, a text or a form field of a document, and nothing else of it."""

from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field

from computer_linker.computer.facets.files import Mark, Write
from computer_linker.errors import Conflict, ExecutionFailed, InvalidRequest, LimitExceeded
from computer_linker.model.base import Model
from computer_linker.model.paths import RootedPath
from computer_linker.operations.file.changing import Sha256, file_path
from computer_linker.providers.documents.decoder import Decoded, Decoder, in_memory
from computer_linker.providers.documents.kinds import HEAD, kind_of
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes

_MAX_FILE = 60 << 20
Value = str | int | float | bool | None


class CellEdit(Model):
    sheet: Annotated[str | None, Field(max_length=256, description="By name; the first sheet when left out.")] = None
    range: Annotated[str, Field(max_length=40, description="`B7`, or `A1:C2`.")]
    values: Annotated[
        Value | list[list[Value]],
        Field(description="One value for all cells, or rows of values. `=A1+1` is a formula; null empties a cell."),
    ]


class TextEdit(Model):
    old_text: Annotated[str, Field(min_length=1, max_length=20_000, description="As it stands in one paragraph.")]
    new_text: Annotated[str, Field(max_length=20_000)]
    page: Annotated[int | None, Field(ge=1, description="Only on this slide.")] = None
    replace_all: Annotated[bool, Field(description="Replace every place; else it must be there once.")] = False


class EditInput(Model):
    cells: Annotated[
        list[CellEdit] | None, Field(min_length=1, max_length=500, description="Of an Excel workbook.")
    ] = None
    texts: Annotated[
        list[TextEdit] | None,
        Field(min_length=1, max_length=500, description="Of a Word, PowerPoint or OpenDocument file."),
    ] = None
    fields: Annotated[
        dict[str, str] | None, Field(min_length=1, max_length=500, description="Of a PDF form, by the field's name.")
    ] = None


class EditOptions(Model):
    dry_run: Annotated[bool, Field(description="Only say what would change.")] = False
    if_sha256: Annotated[Sha256 | None, Field(description="Edit only while the file has this digest.")] = None


class EditedDocument(Model):
    path: str
    size: int
    sha256: str
    changes: Annotated[int, Field(description="Cells, places or fields that were set.")]
    parts: Annotated[
        list[str], Field(description="The parts of the package that were rewritten; all others are copied.")
    ]


@operation(
    "document.edit",
    did="edited the document",
    needs={Capability.FS_READ, Capability.FS_WRITE},
    effect=Effect.CHANGE,
    shows="changes",
    destructive=True,
    text=shapes.DOCUMENT,
    examples=[
        Example(
            "Set a cell of a workbook.",
            {"target": "budget.xlsx", "input": {"cells": [{"sheet": "2026", "range": "B7", "values": 1250.5}]}},
            runs=False,
        ),
        Example(
            "Change a text in a letter.",
            {"target": "letter.docx", "input": {"texts": [{"oldText": "5 May", "newText": "12 May"}]}},
            runs=False,
        ),
    ],
)
async def document_edit(
    ctx: Context, target: str, input: EditInput, options: EditOptions = EditOptions()
) -> EditedDocument:
    """Change cells of a workbook, texts of a document or presentation, or fields of a PDF form; file.undo takes it back.

    Only the parts that hold the change are rewritten: every other part of the package keeps its bytes, and a PDF is added to at
    its end. A text keeps the formatting of where it begins. All edits apply, or none does.
    """
    given = [part for part in (input.cells, input.texts, input.fields) if part is not None]
    if len(given) != 1:
        raise InvalidRequest("Give exactly one of `cells`, `texts` and `fields`.")
    path = file_path(ctx, target)
    found, old, mark = await _edited(ctx, path, input)
    digest = sha256(old).hexdigest()
    if options.if_sha256 is not None and digest != options.if_sha256.lower():
        raise Conflict(f"{path.shown} is not the version that `ifSha256` names.", path=path.shown, sha256=digest)
    await ctx.change([Write(path, found.payload, expect=mark)], dry_run=options.dry_run)
    facts = found.facts
    if facts.get("recalculates"):
        ctx.warn(
            "Formulas keep their old results until the workbook is opened in an application, which calculates anew."
        )
    count = int(facts.get("cells") or facts.get("replaced") or facts.get("fields") or 0)
    ctx.note(size=len(found.payload), changes=count)
    return EditedDocument(
        path=path.shown,
        size=len(found.payload),
        sha256=sha256(found.payload).hexdigest(),
        changes=count,
        parts=list(facts.get("parts", [])),
    )


async def _edited(ctx: Context, path: RootedPath, input: EditInput) -> tuple[Decoded, bytes, Mark]:
    """The edited content, the content it was made from, and its state on the disk."""
    old, state = await ctx.computer.files.read_whole(path, _MAX_FILE)
    kind = kind_of(old[:HEAD])
    if kind not in ("package", "pdf"):
        raise InvalidRequest(
            f"{path.shown} is no document that can be edited; file.patch and file.write change text.", path=path.shown
        )
    order: dict[str, Any] = {"action": "edit", "kind": kind, "edits": input.to_wire()}
    with in_memory(old) as fd:
        found = await ctx.use(Decoder).run(fd, order, ctx.scope.policy)
    ctx.boundary = found.boundary
    if not found.payload:
        raise ExecutionFailed("The decoder gave no new content.")
    if len(found.payload) > _MAX_FILE:
        raise LimitExceeded(f"{path.shown} would be larger than {_MAX_FILE} bytes.", path=path.shown)
    return found, old, state.mark
