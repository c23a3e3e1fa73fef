"""Exports evidence: one page with the related operations, or the files with a manifest."""

import json
import secrets
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from computer_linker.cli.output import CliError
from computer_linker.cli.places import current_config, state_home
from computer_linker.system import os

if TYPE_CHECKING:
    from computer_linker.artifacts.report import Piece
    from computer_linker.artifacts.store import ArtifactStore
    from computer_linker.model.artifact import Artifact
    from computer_linker.model.history import HistoryEvent

_MAX_EVENTS = 300
_ENDINGS = {
    "image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif", "video/webm": "webm", "video/mp4": "mp4",
    "application/pdf": "pdf", "application/json": "json", "text/plain": "txt", "application/zip": "zip", "application/gzip": "gz",
}  # fmt: skip


def page_of(
    store: "ArtifactStore",
    found: "Sequence[Artifact]",
    path: Path,
    *,
    title: str | None,
    asked: str,
    whole_session: bool,
) -> dict[str, Any]:
    """Write the page of this evidence and the related operations."""
    from computer_linker import __version__
    from computer_linker.artifacts.report import Report, report_page
    from computer_linker.audit.wording import approval_phrase
    from computer_linker.model.times import shown_ns

    events, left_out = _events(found, whole_session=whole_session)
    scopes = sorted({one.scope for one in found})
    report = Report(
        title=title or f"Evidence from {', '.join(scopes)}",
        computer=current_config(state_home()).machine_name,
        made_at=shown_ns(time.time_ns()),
        version=__version__,
        asked=asked,
        events=[{**event, "answered": approval_phrase(event)} for event in events],
        pieces=_pieces(store, found),
        history=_checked(),
        left_out=left_out,
        facts={"Scope": ", ".join(scopes), "Label": ", ".join(sorted({one.label for one in found if one.label}))},
    )
    _replace(path, report_page(report).encode())
    return {"file": str(path), "pieces": len(found), "operations": len(events)}


def files_of(store: "ArtifactStore", found: "Sequence[Artifact]", folder: Path) -> dict[str, Any]:
    """Write each artifact to a file named by its number and kind, and `manifest.json` beside them."""
    from computer_linker.operations.artifact.answer import facts

    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise CliError(f"{folder} cannot be made: {error.strerror}", "choose a new folder") from error
    listed = []
    for number, one in enumerate(found, start=1):
        name = f"{number:03}-{one.kind}.{_ENDINGS.get(one.media_type, 'bin')}"
        _make(folder / name, store.content(one))
        listed.append({"file": name, **facts(one).to_wire()})
    manifest = json.dumps({"artifacts": listed}, indent=1, ensure_ascii=False)
    _make(folder / "manifest.json", f"{manifest}\n".encode())
    return {"file": str(folder), "pieces": len(found)}


def _replace(path: Path, content: bytes) -> None:
    """Replace the file of this name by a page. A link of that name is replaced, its target is not touched."""
    fresh = path.with_name(f".{path.name[:100]}-{secrets.token_hex(8)}")
    _make(fresh, content)
    try:
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise _not_written(path, error) from error


def _make(path: Path, content: bytes) -> None:
    """Create a new private file. Its folder may be writable for a client, so no link is followed."""
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(content)
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> CliError:
    return CliError(f"{path} cannot be written: {error.strerror}", "choose another file")


def _pieces(store: "ArtifactStore", found: "Iterable[Artifact]") -> "list[Piece]":
    from computer_linker.artifacts.report import MAX_PAGE, Piece, is_shown

    room = MAX_PAGE
    pieces: list[Piece] = []
    for one in found:
        fits = is_shown(one) and one.size <= room
        room -= one.size if fits else 0
        pieces.append(Piece(one, store.content(one) if fits else None))
    return pieces


def _events(found: "Sequence[Artifact]", *, whole_session: bool) -> "tuple[list[HistoryEvent], int]":
    """Return the operations that produced this evidence, and with `whole_session` those between them."""
    from computer_linker.audit.history import HistoryFolder, every_event
    from computer_linker.audit.query import parse, within
    from computer_linker.model.principal import NO_SESSION

    folder = state_home() / "audit"
    if not HistoryFolder.exists(folder):
        return [], 0
    history = HistoryFolder(folder)
    history.index.catch_up()
    made = {one.operation for one in found}
    events: list[HistoryEvent] = []
    for session in sorted({one.session for one in found}):
        candidates = every_event(history, within(parse(f'session:"{session}"'), None, None))
        # Clients without their own session share one: its other events may be unrelated.
        is_whole = whole_session and session != NO_SESSION
        events += [event for event in candidates if is_whole or event["operationId"] in made]
    events.sort(key=lambda event: event["startedAt"])
    return events[-_MAX_EVENTS:], max(0, len(events) - _MAX_EVENTS)


def _checked() -> str:
    from computer_linker.audit.history import HistoryFolder
    from computer_linker.audit.views import Question, answer_now

    folder = state_home() / "audit"
    if not HistoryFolder.exists(folder):
        return ""
    verification = answer_now(HistoryFolder(folder), Question("verify", None))
    if verification["valid"]:
        return f"The history was checked and is whole: {verification['records']} records."
    return f"The history was checked and was changed, first at record {verification['firstBad']}."
