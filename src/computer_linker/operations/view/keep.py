"""view.keep: put what a view changed in place."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Annotated

from anyio import CancelScope
from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.computer.facets.files import Change
from computer_linker.errors import Conflict, InvalidRequest, LimitExceeded, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.operations.view.evidence import EvidenceOption, keep_evidence, refuse_without_right
from computer_linker.operations.view.show import NeverKept
from computer_linker.operations.view.summary import summarised
from computer_linker.policy.digest import digest_of_parts
from computer_linker.policy.visible_text import escaped
from computer_linker.providers.own_folders import remove_later
from computer_linker.providers.views.changes import ViewChange
from computer_linker.providers.views.keeping import Keeping, discard, is_new_folder, kept_names, never_kept
from computer_linker.providers.views.merging import MergedText
from computer_linker.providers.views.reading import ViewReader, path_of
from computer_linker.providers.views.store import View, Views, still_runs
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes
from computer_linker.undo.journal import UndoJournal

_DOES = {"added": "writes", "changed": "writes", "removed": "removes", "renamed": "moves"}
Found = list[tuple[RootedPath, ViewChange]]


class KeepInput(Model):
    paths: Annotated[
        list[str] | None,
        Field(
            max_length=10_000,
            description="Keep only these, each a path of view.show or a folder above some; all by default.",
        ),
    ] = None


class KeepOptions(Model):
    merge: Annotated[
        bool, Field(description="Put the merge of both in place where a text changed in the folder too; see view.show.")
    ] = False
    evidence: EvidenceOption = False


class Kept(Model):
    view_id: str
    paths: Annotated[list[str], Field(description="What was put in place; the first thousand.")]
    kept: int
    merged: Annotated[list[str], Field(description="Texts that changed in the folder too, and were merged.")] = []
    refused: Annotated[list[NeverKept], Field(description="Changes that are never put in place, and why.")]
    left: Annotated[int, Field(description="How many changes stay in the view; 0 when the view is gone.")]
    artifact: Annotated[str | None, Field(description="The evidence that was asked for.")] = None
    undoable: Annotated[bool, Field(description="True when file.undo can take it back.")] = False


async def show_keep(
    ctx: Context, target: str, input: KeepInput = KeepInput(), options: KeepOptions = KeepOptions()
) -> Preview:
    """The names and contents that would change, held to what the folder and the view contain now."""
    views = ctx.use(Views)
    view = await run_sync(views.find, target, ctx.scope.id, ctx.principal)
    head = escaped(f"keeps what this command changed: {view.command}")
    if views.program_of(view.id) is not None:
        # Bytes that it has mapped change without a new time of the file: what is shown would be held to nothing.
        return Preview((head,), obstacle=still_runs(view))
    reader = ViewReader.of(ctx, view)
    found = await run_sync(reader.changes)
    chosen, _, _ = await run_sync(_chosen, found, ctx, input)
    possible = await run_sync(reader.merges, chosen)
    merges = possible if options.merge else {}
    if ctx.planned is None:
        # Later the undo journal has linked the files that are replaced, which changes their change time.
        _refuse_conflicts(chosen, merges, possible)
    texts = (f"{path.shown} {sha256(text.content).hexdigest()}" for path, text in merges.items())
    # With the operations: after a further program a yes counts no more, whatever the times of the files are.
    ran = repr(view.operations)
    holds = {view.id: digest_of_parts(ran, *(repr(_held(*each)) for each in chosen), *texts)}
    # A renamed file also goes from where it was.
    former = [path_of(path, change.source).shown for path, change in chosen if change.source is not None]
    paths = (*(path.shown for path, _ in chosen), *former)
    lines = await summarised(ctx, reader, found, chosen, merges, is_asked=True)
    return Preview((head, *lines), holds, paths=paths, kinds=_kinds(chosen))


@operation(
    "view.keep",
    did="kept changes of the view[: {these}]",
    needs={Capability.FS_WRITE},
    effect=Effect.CHANGE,
    destructive=True,
    awaits_intent=True,
    asked_by=lambda policy: policy.outcome == "ask",
    deadline_s=600,
    text=shapes.KEPT,
    shows=show_keep,
    examples=[Example("Keep everything.", {"target": "01M7M8DX489Z9FBH6T8B0F3QGF"}, runs=False)],
)
async def view_keep(
    ctx: Context, target: str, input: KeepInput = KeepInput(), options: KeepOptions = KeepOptions()
) -> Kept:
    """Put the changes of the view `target` in place: all of them or none, or all of the chosen ones. file.undo takes it back.

    Refused with `conflict` where the folder changed meanwhile under one of these names. `merged` in its details are texts that
    `merge: true` puts in place with the changes of both; for the others choose other paths, or drop the view.
    """
    views = ctx.use(Views)
    refuse_without_right(ctx, wanted=options.evidence)
    view = await run_sync(views.find, target, ctx.scope.id, ctx.principal)
    with views.busy(view):
        # A part leaves the rest to further programs, and a yes is held to the view as it is, without second names.
        is_sealed = input.paths is None and not ctx.is_held and await run_sync(views.seal, view)
        try:
            kept = await _keep(ctx, view, input, options, is_sealed=is_sealed)
        except BaseException:
            if is_sealed and not ctx.use(UndoJournal).steps_of(ctx.operation_id):
                with CancelScope(shield=True):
                    await run_sync(views.unseal, view)
            raise
        if not kept.left:
            remove_later(await run_sync(views.dissolve, view))
    return kept


async def _keep(ctx: Context, view: View, input: KeepInput, options: KeepOptions, *, is_sealed: bool) -> Kept:
    reader = ViewReader.of(ctx, view)
    found = await run_sync(reader.changes)
    chosen, refused, left = await run_sync(_chosen, found, ctx, input)
    possible = await run_sync(reader.merges, chosen)
    merges = possible if options.merge else {}
    _refuse_conflicts(chosen, merges, possible)
    kept = ctx.use(UndoJournal).kept
    lines = await summarised(ctx, reader, found, chosen, merges) if options.evidence else []
    with contextlib.ExitStack() as opened:
        roots = await run_sync(opened.enter_context, reader.opened())
        keepings = [
            Keeping(each.root, each.upper, each.lower, kept, view.base_ns, is_sealed=is_sealed, merges=merges)
            for each in roots
        ]
        try:
            changes = await run_sync(partial(_planned, keepings, chosen, is_part=left > 0))
            if changes:
                await ctx.change(changes)
            else:
                ctx.effect = "suspected_noop"
        finally:
            # Those that the journal refers to hold what was replaced; the rest is of a batch that failed.
            stored = {step.get("kept") for step in ctx.use(UndoJournal).steps_of(ctx.operation_id)}
            names = [name for keeping in keepings for name in keeping.names if name not in stored]
            await run_sync(kept.drop, names)
        if left:
            await run_sync(reader.rebase, chosen)
        for each in keepings:
            gone = kept_names(each.root, chosen) if left and view.kind == "overlay" else each.linked
            await run_sync(discard, each.upper, gone)
    shown = [path.shown for path, _ in chosen]
    ctx.note(viewId=view.id, kept=len(shown), merged=len(merges), path=next(iter(shown), None), files=len(shown))
    return Kept(
        view_id=view.id,
        paths=shown[:1000],
        kept=len(shown),
        merged=[path.shown for path in merges],
        refused=refused,
        left=left,
        artifact=await _evidence(ctx, view, lines) if options.evidence else None,
        undoable=bool(shown),
    )


async def _evidence(ctx: Context, view: View, lines: list[str]) -> str | None:
    """Store the evidence of changes that are in place already: without room for it they stay, with a warning."""
    try:
        return await keep_evidence(ctx, view, "kept", lines)
    except LimitExceeded as error:
        ctx.warn(f"The changes are in place, but their evidence was not stored. {error.message}")
        return None


def _held(path: RootedPath, change: ViewChange) -> tuple[RootedPath, ViewChange]:
    """What a yes is held to: all of a change but what the undo journal's own links change."""
    before = None if change.before is None else change.before._replace(changed_ns=0, links=1)
    return path, replace(change, before=before, is_conflict=False)


def _kinds(chosen: Found) -> frozenset[str]:
    """What keeping these does to files."""
    return frozenset(_DOES[change.action] + _special(change) for _, change in chosen)


def _special(change: ViewChange) -> str:
    entry = change.before if change.action == "removed" else change.after
    if entry is None or change.action == "renamed":
        return ""
    if entry.kind == "directory":
        return " folders"
    if entry.kind == "symlink":
        return " links"
    return " programs" if change.action != "removed" and entry.mode & 0o111 else ""


def _refuse_conflicts(
    chosen: Found, merges: Mapping[RootedPath, MergedText], possible: Mapping[RootedPath, MergedText]
) -> None:
    """Raise Conflict for what changed in the folder since and is not merged."""
    both = [path for path, change in chosen if change.is_conflict and path not in merges]
    if not both:
        return
    mergeable = [path.shown for path in both if path in possible]
    rest = [path.shown for path in both if path not in possible]
    advice = " `merge: true` keeps the merged text of all of them." if mergeable and not rest else ""
    raise Conflict(
        f"{len(both)} of these changed in the folder since the view was made, first {both[0].shown}. Nothing was kept.{advice}",
        paths=rest[:100],
        merged=mergeable[:100],
    )


def _planned(keepings: list[Keeping], chosen: Found, *, is_part: bool) -> list[Change]:
    return [
        change
        for keeping in keepings
        for change in keeping.plan([each for each in chosen if each[0].root == keeping.root.root], is_part=is_part)
    ]


def _chosen(found: Found, ctx: Context, input: KeepInput) -> tuple[Found, list[NeverKept], int]:
    """The changes to make, those that are never made, and how many others stay in the view."""
    closed = never_kept(found)
    refused = [NeverKept(path=path.shown, reason=why) for path, why in closed.items()]
    possible = [(path, change) for path, change in found if path not in closed] if closed else found
    if input.paths is None:
        return possible, refused, 0
    wanted = [ctx.path(path, for_writing=True) for path in input.paths]
    asked = {_place(path) for path in wanted}
    chosen = [(path, change) for path, change in possible if not asked.isdisjoint(_above(path))]
    taken = {place for path, _ in chosen for place in _above(path)}
    for given, above in zip(input.paths, wanted, strict=True):
        if _place(above) not in taken:
            raise NotFound(f"The view changes nothing at {given}.", path=given)
    needed = {_place(path) for path, change in possible if is_new_folder(change)}
    needed -= {_place(path) for path, _ in chosen}
    for path, _ in chosen:
        if not needed.isdisjoint(_above(path)):
            raise InvalidRequest(f"{path.shown} lies in a new folder; choose the folder too.", path=path.shown)
    return chosen, refused, len(possible) - len(chosen)


def _place(path: RootedPath) -> tuple[str, ...]:
    return (path.root, *path.parts)


def _above(path: RootedPath) -> list[tuple[str, ...]]:
    """The place of a path and of every folder above it, up to its root."""
    place = _place(path)
    return [place[:length] for length in range(1, len(place) + 1)]
