"""file.patch: change files by a unified diff or by literal edits, all or nothing."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Literal

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.computer.facets.files import Change, Mark, Remove, Write
from computer_linker.errors import AlreadyExists, Conflict, InvalidRequest, LimitExceeded, NotFound
from computer_linker.model.base import Model, Older
from computer_linker.model.paths import RootedPath
from computer_linker.operations.file.changing import Sha256
from computer_linker.policy.engine import holds
from computer_linker.providers.charsets import Charset, recognised
from computer_linker.providers.patching.apply import apply_edit, apply_hunks, as_bytes, as_text, given_text
from computer_linker.providers.patching.diff import MAX_FILES, FilePatch, parse_diff
from computer_linker.registry import Capability, Context, Effect, Example, operation, shapes

_MAX_FILE = 20_000_000
_MAX_TOTAL = 100_000_000


class Edit(Model):
    path: Annotated[str | None, Field(description="The file; the target when left out.")] = None
    old_text: Annotated[str, Field(min_length=1, description="Exactly as it stands in the file.")]
    new_text: str
    replace_all: Annotated[bool, Field(description="Replace every place; else `oldText` must be there once.")] = False


class Replacement(Model):
    """Another way to write an edit of the target, for older clients."""

    path: str | None = None
    old: Annotated[str, Field(min_length=1)]
    new: str
    replace_all: bool = False


class PatchInput(Model):
    diff: Annotated[str | None, Field(description="A unified diff; text around it is skipped.")] = None
    patch: Annotated[str | None, Older(), Field(description="Another name for `diff`.")] = None
    edits: Annotated[list[Edit] | None, Field(min_length=1, max_length=1000)] = None
    replacements: Annotated[list[Replacement] | None, Older(), Field(min_length=1, max_length=1000)] = None
    encoding: Annotated[
        Literal["utf8", "base64"],
        Field(description="base64 for a diff that is not UTF-8, such as one of a Latin-1 file."),
    ] = "utf8"


class PatchOptions(Model):
    dry_run: Annotated[bool, Field(description="Only say what would change.")] = False
    if_sha256: Annotated[
        Sha256 | None, Field(description="For one file: apply only while it still has this digest.")
    ] = None


class PatchedFile(Model):
    path: str
    action: Literal["created", "modified", "deleted", "renamed"]
    additions: int
    deletions: int
    sha256: Annotated[str | None, Field(description="Of the new content; null for a deleted file.")]


class Patched(Model):
    files: Annotated[list[PatchedFile], Field(description="Every file that was touched.")]


@dataclass(slots=True)
class _Draft:
    """One file while it is being patched."""

    path: RootedPath
    old: str
    mark: Mark | None
    new: str = ""
    additions: int = 0
    deletions: int = 0
    gone: "RootedPath | None" = None
    """The old name of a renamed file."""
    is_deleted: bool = False
    is_executable: bool | None = None
    charset: Charset | None = None
    """Of a file that is not UTF-8 where the patch has characters of its own; None keeps all bytes as they are."""

    def to_bytes(self, text: str) -> bytes:
        return as_bytes(text) if self.charset is None else self.charset.encode(text)


@operation(
    "file.patch",
    did="patched {these}",
    needs={Capability.FS_WRITE},
    effect=Effect.CHANGE,
    text=shapes.PATCHED,
    shows="changes",
    destructive=True,
    examples=[
        Example(
            "Replace a text.",
            {"target": "notes.txt", "input": {"edits": [{"oldText": "line one", "newText": "line 1"}]}},
            runs=False,
        ),
        Example(
            "Make a file by a diff.",
            {"input": {"diff": "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n"}},
        ),
    ],
)
async def file_patch(
    ctx: Context, input: PatchInput, target: str | None = None, options: PatchOptions = PatchOptions()
) -> Patched:
    """Apply a unified diff or literal edits to one or many files: all of it, or nothing.

    Context must match exactly, though it may have moved to another line; a hunk without lines after its change belongs at the
    file's end. `conflict` says what stands there instead. Links, submodules and binary patches are refused. `patch` is another
    name for `diff`, and `replacements[{old, new}]` for `edits[{oldText, newText}]`. A file keeps its charset, line ends and byte
    order mark.
    """
    drafts = await _drafts(ctx, target, input)
    files = [_file(draft) for draft in drafts]
    ctx.note(path=files[0].path if files else None, files=len(files))
    _check_digest(drafts, options.if_sha256)
    changes = [change for draft in drafts for change in _changes(draft)]
    await ctx.change(changes, dry_run=options.dry_run)
    ctx.note(
        additions=sum(file.additions for file in files),
        deletions=sum(file.deletions for file in files),
    )
    return Patched(files=files)


async def _drafts(ctx: Context, target: str | None, input: PatchInput) -> list[_Draft]:
    given = [part for part in (input.diff, input.patch, input.edits, input.replacements) if part is not None]
    if len(given) != 1:
        raise InvalidRequest("Give exactly one of `diff` (or `patch`) and `edits` (or `replacements`).")
    diff = input.diff if input.diff is not None else input.patch
    if diff is not None:
        return await _from_diff(ctx, target, given_text(diff, input.encoding, "input.diff"))
    if input.encoding != "utf8":
        raise InvalidRequest("`encoding` is for a diff; edits are text.", field="input.encoding")
    edits = input.edits or [
        Edit(path=item.path, old_text=item.old, new_text=item.new, replace_all=item.replace_all)
        for item in input.replacements or ()
    ]
    return await _from_edits(ctx, target, edits)


async def _from_diff(ctx: Context, target: str | None, diff: str) -> list[_Draft]:
    patches = await run_sync(parse_diff, diff)
    _check_target(ctx, target, patches)
    drafts: list[_Draft] = []
    seen: set[tuple[str, tuple[str, ...]]] = set()
    room = _MAX_TOTAL
    for patch in patches:
        draft = await _opened(ctx, patch)
        for path in (draft.path, draft.gone):
            if path is not None and (path.root, path.parts) in seen:
                raise InvalidRequest(f"The patch has two sections for {path.shown}.", path=path.shown)
            if path is not None:
                seen.add((path.root, path.parts))
        room -= len(draft.old)
        if room < 0:
            raise LimitExceeded("The files of this patch are too large together.", maxBytes=_MAX_TOTAL)
        drafts.append(draft)
    may_quote = holds(ctx.principal, ctx.scope, Capability.FS_READ)
    for draft, patch in zip(drafts, patches, strict=True):
        draft.new = await run_sync(lambda draft=draft, patch=patch: _apply(draft, patch, may_quote))  # type: ignore[misc]
    return drafts


async def _opened(ctx: Context, patch: FilePatch) -> _Draft:
    old = None if patch.old is None else ctx.path(patch.old, for_writing=True)
    new = None if patch.new is None else ctx.path(patch.new, for_writing=True)
    path = new or old
    assert path is not None
    if old is None:
        draft = _Draft(path, "", None)
        await _refuse_existing(ctx, path)
    else:
        given = "".join(line for hunk in patch.hunks for line in (*hunk.old, *hunk.new))
        text, mark, charset = await (_text_or_nothing if patch.may_create else _text)(ctx, old, given)
        if patch.may_create and text:
            raise AlreadyExists(f"{old.shown} already exists, so the patch cannot make it.", path=old.shown)
        draft = _Draft(path, text, mark, is_deleted=new is None, charset=charset)
        if new is not None and new.parts != old.parts:
            draft.gone = old
            await _refuse_existing(ctx, new)
    draft.additions, draft.deletions = patch.additions, patch.deletions
    draft.is_executable = patch.is_executable
    return draft


async def _refuse_existing(ctx: Context, path: RootedPath) -> None:
    try:
        await ctx.computer.files.stat(path)
    except NotFound:
        return
    raise AlreadyExists(f"{path.shown} already exists, so the patch cannot make it.", path=path.shown)


def _apply(draft: _Draft, patch: FilePatch, may_quote: bool) -> str:
    new = apply_hunks(draft.old, patch, draft.path.shown, may_quote=may_quote)
    if draft.is_deleted and new:
        raise Conflict(f"{draft.path.shown} holds more than the patch deletes.", path=draft.path.shown)
    return new


async def _from_edits(ctx: Context, target: str | None, edits: list[Edit]) -> list[_Draft]:
    drafts: dict[tuple[str, tuple[str, ...]], _Draft] = {}
    may_quote = holds(ctx.principal, ctx.scope, Capability.FS_READ)
    for edit in edits:
        given_text(edit.old_text + edit.new_text, "utf8", "input.edits")
        name = edit.path if edit.path is not None else target
        if not name:
            raise InvalidRequest("Each edit needs a `path`, or the request a target.")
        path = ctx.path(name, for_writing=True)
        key = (path.root, path.parts)
        if key not in drafts:
            if len(drafts) >= MAX_FILES:
                raise LimitExceeded(f"A patch may touch at most {MAX_FILES} files.", maxFiles=MAX_FILES)
            given = "".join(each.old_text + each.new_text for each in edits)
            text, mark, charset = await _text(ctx, path, given)
            drafts[key] = _Draft(path, text, mark, text, charset=charset)
        draft = drafts[key]
        draft.new, count = await run_sync(
            lambda draft=draft, edit=edit: apply_edit(  # type: ignore[misc]
                draft.new,
                edit.old_text,
                edit.new_text,
                draft.path.shown,
                replace_all=edit.replace_all,
                may_quote=may_quote,
            )
        )
        draft.additions += count * _line_count(edit.new_text)
        draft.deletions += count * _line_count(edit.old_text)
        if sum(len(draft.old) + len(draft.new) for draft in drafts.values()) > _MAX_TOTAL:
            raise LimitExceeded("The files of this patch are too large together.", maxBytes=_MAX_TOTAL)
    return list(drafts.values())


async def _text(ctx: Context, path: RootedPath, given: str) -> tuple[str, Mark, Charset | None]:
    """A file's text, its state, and its charset where bytes and `given` characters have to be told apart.

    A text without characters beyond ASCII fits every charset that has ASCII's bytes, so such a file's bytes stay as they are.
    """
    data, found = await ctx.computer.files.read_whole(path, _MAX_FILE)
    charset = Charset.marked(data)
    if charset is None and any("\x7f" < char < "\ud800" or char > "\udfff" for char in given):
        charset = await run_sync(recognised, data)
    if charset is None or charset.codec == "utf-8":
        return as_text(data), found.mark, None
    try:
        return charset.decode(data), found.mark, charset
    except UnicodeDecodeError:
        return as_text(data), found.mark, None


async def _text_or_nothing(ctx: Context, path: RootedPath, given: str) -> tuple[str, Mark | None, Charset | None]:
    try:
        return await _text(ctx, path, given)
    except NotFound:
        return "", None, None


def _check_target(ctx: Context, target: str | None, patches: list[FilePatch]) -> None:
    """Check that a target beside a diff is the file it changes."""
    if target in (None, "", "."):
        return
    wanted = ctx.path(str(target)).parts
    named = {ctx.path(name).parts for patch in patches for name in (patch.old, patch.new) if name is not None}
    if named != {wanted}:
        raise InvalidRequest("The diff changes other files than the target. Leave the target out, or name the file.")


def _check_digest(drafts: list[_Draft], wanted: str | None) -> None:
    if wanted is None:
        return
    if len(drafts) != 1:
        raise InvalidRequest("`ifSha256` is for a patch of one file.", field="options.ifSha256")
    found = sha256(drafts[0].to_bytes(drafts[0].old)).hexdigest()
    if found != wanted.lower():
        shown = drafts[0].path.shown
        raise Conflict(f"{shown} is not the version that `ifSha256` names. Read it again.", path=shown, sha256=found)


def _changes(draft: _Draft) -> list[Change]:
    if draft.is_deleted:
        return [Remove(draft.path, expect=draft.mark)]
    content = draft.to_bytes(draft.new)
    if draft.mark is None:
        return [Write(draft.path, content, must_be_new=True, create_parents=True, is_executable=draft.is_executable)]
    if draft.gone is not None:
        made = Write(draft.path, content, must_be_new=True, create_parents=True, is_executable=draft.is_executable)
        return [made, Remove(draft.gone, expect=draft.mark)]
    return [Write(draft.path, content, expect=draft.mark, is_executable=draft.is_executable)]


def _file(draft: _Draft) -> PatchedFile:
    action: Literal["created", "modified", "deleted", "renamed"] = "modified"
    if draft.is_deleted:
        action = "deleted"
    elif draft.gone is not None:
        action = "renamed"
    elif draft.mark is None:
        action = "created"
    return PatchedFile(
        path=draft.path.shown,
        action=action,
        additions=draft.additions,
        deletions=draft.deletions,
        sha256=None if draft.is_deleted else sha256(draft.to_bytes(draft.new)).hexdigest(),
    )


def _line_count(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)
