"""view.show: what keeping a view would change."""

from collections.abc import Sequence
from typing import Annotated

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.audit.store import AuditStore
from computer_linker.model.paths import RootedPath
from computer_linker.model.times import shown_ns
from computer_linker.operations.view.summary import links_out
from computer_linker.providers.views.changes import Action, ViewChange
from computer_linker.providers.views.hosts import reached_by
from computer_linker.providers.views.keeping import never_kept
from computer_linker.providers.views.names import Kind
from computer_linker.providers.views.reading import Detail, TextDifference, ViewReader, is_hidden, path_of
from computer_linker.providers.views.store import Network, Views
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_NO_DETAIL = Detail()


class ShowOptions(Model):
    max_changes: Annotated[int, Field(ge=1, le=10_000, description="List at most this many names.")] = 1000
    max_diff_bytes: Annotated[
        int,
        Field(
            ge=0,
            le=2_000_000,
            description="Bytes of the differences together; with 0 no file is read, no line counted.",
        ),
    ] = 60_000


class ShownChange(Model):
    path: str
    action: Action
    kind: Kind
    additions: int
    deletions: int
    mode: Annotated[str, Field(description="The mode it gets, in octal; the present one for what is removed.")]
    size: int
    modified_at: Annotated[
        str, Field(description="The modification time it gets; the present one for what is removed.")
    ]
    renamed_from: str | None = None
    modified_before: Annotated[str | None, Field(description="The present modification time, where it is another.")] = (
        None
    )
    other_names: Annotated[
        int, Field(description="Other names (hard links) of the present file; they keep its present content.")
    ] = 0
    mode_before: Annotated[str | None, Field(description="The present mode, where it becomes another.")] = None
    size_before: Annotated[int | None, Field(description="The present size of a file that changes.")] = None
    link_target: Annotated[str | None, Field(description="Where a link leads that is added or changed.")] = None
    attributes: Annotated[list[str], Field(description="Extended attributes that change.")] = []
    names: Annotated[int, Field(description="How many names are in a folder that goes.")] = 0


class NeverKept(Model):
    path: str
    reason: str


class LinkOut(Model):
    path: str
    target: str


class ViewChanges(Model):
    view_id: str
    changes: list[ShownChange]
    diff: Annotated[
        str,
        Field(description="A unified diff of the text files, as far as it fits; of `merged` ones that of the merge."),
    ]
    hosts: Annotated[
        list[str], Field(description="Hosts that its programs connected to; known where `network` is `some`.")
    ]
    conflicts: Annotated[list[str], Field(description="Paths that changed in the folder since; they cannot be kept.")]
    merged: Annotated[
        list[str], Field(description="Texts that changed in the folder too; view.keep with `merge` puts both in place.")
    ]
    refused: Annotated[list[NeverKept], Field(description="Changes that are never put in place, and why.")]
    outside: Annotated[list[LinkOut], Field(description="Links among the changes that lead out of the scope.")]
    refused_hosts: Annotated[list[str], Field(description="Hosts that its programs tried and may not reach.")]
    network: Annotated[
        Network | None,
        Field(description="The network of its programs: `closed`, `some` hosts of a list, or `open`: hosts not known."),
    ]
    running: Annotated[bool, Field(description="True while a program runs in it.")]
    program: Annotated[
        str | None,
        Field(description="The command that runs in it now. What a command leaves running is ended with it."),
    ]
    truncated: bool


@operation(
    "view.show",
    did="looked at the view",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.VIEW,
    examples=[Example("What a view would change.", {"target": "01M7M8DX489Z9FBH6T8B0F3QGF"}, runs=False)],
)
async def view_show(ctx: Context, target: str, options: ShowOptions = ShowOptions()) -> ViewChanges:
    """Show what would change in the folder if the view `target` were kept: each name, and a diff of the text files."""
    return await run_sync(_looked_at, ctx, target, options)


def _looked_at(ctx: Context, target: str, options: ShowOptions) -> ViewChanges:
    views = ctx.use(Views)
    view = views.find(target, ctx.scope.id, ctx.principal)
    reader = ViewReader.of(ctx, view)
    found = reader.changes()
    closed = never_kept(found)
    possible = [(path, change) for path, change in found if path not in closed] if closed else found
    listed = found[: options.max_changes]
    is_read = options.max_diff_bytes > 0
    readable = [each for each in listed if is_read and each[0] not in closed and not is_hidden(each[0])]
    merges = reader.merges([each for each in found if each[1].is_conflict])
    texts = dict(zip((path for path, _ in readable), reader.differences(readable, merges), strict=True))
    details = dict(zip((path for path, _ in readable), reader.details(readable), strict=True))
    diff, is_cut = _joined(list(texts.values()), options.max_diff_bytes)
    reached = reached_by(ctx.use(AuditStore), view)
    return ViewChanges.model_construct(
        view_id=view.id,
        changes=[
            # Not read: a refused name may be a secret.
            _shown(
                path,
                change,
                texts.get(path) if texts else None,
                details.get(path, _NO_DETAIL) if details else _NO_DETAIL,
            )
            for path, change in listed
        ],
        diff=diff,
        hosts=reached.hosts,
        refused_hosts=reached.refused,
        network=view.network,
        conflicts=[path.shown for path, change in found if change.is_conflict and path not in merges],
        merged=[path.shown for path in merges],
        refused=[NeverKept(path=path.shown, reason=why) for path, why in closed.items()],
        outside=[LinkOut(path=path, target=to) for path, to in links_out(reader, possible)],
        running=views.program_of(view.id) is not None,
        program=views.program_of(view.id),
        truncated=is_cut or len(found) > len(listed),
    )


def _shown(path: RootedPath, change: ViewChange, text: TextDifference | None, detail: Detail) -> ShownChange:
    entry, before = change.after or change.before, change.before
    assert entry is not None
    former = None if change.source is None else path_of(path, change.source).shown
    # Of known types, and up to ten thousand.
    return ShownChange.model_construct(
        path=path.shown,
        action=change.action,
        kind=entry.kind,
        additions=text.additions if text else 0,
        deletions=text.deletions if text else 0,
        mode=f"{entry.mode:04o}",
        size=entry.size,
        modified_at=shown_ns(entry.modified_ns),
        renamed_from=former,
        modified_before=_other_time(change),
        other_names=before.links - 1 if before is not None and change.after is not None else 0,
        mode_before=f"{before.mode:04o}" if before is not None and before.mode != entry.mode else None,
        size_before=before.size if before is not None and before.kind == "file" and change.after is not None else None,
        link_target=detail.link_target,
        attributes=list(detail.attributes),
        names=change.names,
    )


def _other_time(change: ViewChange) -> str | None:
    before, after = change.before, change.after
    if before is None or after is None or before.modified_ns == after.modified_ns:
        return None
    return shown_ns(before.modified_ns)


def _joined(texts: Sequence[TextDifference], most: int) -> tuple[str, bool]:
    """Whole differences of files as long as they fit."""
    pieces: list[str] = []
    size, is_cut = 0, False
    for text in texts:
        if text.lines is None or (text.additions, text.deletions) == (0, 0):
            continue
        piece = "".join(text.lines)
        if size + len(piece.encode()) > most:
            is_cut = True
            continue
        pieces.append(piece)
        size += len(piece.encode())
    return "".join(pieces), is_cut
