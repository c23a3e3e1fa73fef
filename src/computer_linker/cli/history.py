"""history: who did what on this computer."""

import base64
import io
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from computer_linker.cli.output import CliError, note, print_json
from computer_linker.cli.places import state_home
from computer_linker.errors import InvalidRequest, LinkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from computer_linker.audit.history import HistoryFolder
    from computer_linker.model.history import HistoryEvent
    from computer_linker.owner.history.list import HistoryView, ListInput

_Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_Scope = Annotated[str | None, typer.Option(help="Only this scope.")]
_Since = Annotated[
    str | None, typer.Option(help="Only from this time on: 2026-11-01, 2026-11-01T08:30Z, or 3d, 12h, 30m.")
]
_Query = Annotated[
    str | None,
    typer.Option(help='Words, "text in quotes", and terms such as op:file.read ok:false client:x approved:terminal.'),
]


def register(app: typer.Typer) -> None:
    """Add `history` and its commands."""
    group = typer.Typer(help="Who did what on this computer.", rich_markup_mode=None, invoke_without_command=True)
    app.add_typer(group, name="history")
    group.callback()(_show)
    group.command("export")(_export)
    group.command("timeline")(_timeline)


def _show(
    ctx: typer.Context,
    view: Annotated[
        str, typer.Option(help="last, timeline, summary, sessions, connections, failed_replay, debug_bundle.")
    ] = "last",
    scope: _Scope = None,
    since: _Since = None,
    query: _Query = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Rows to show at most.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on showing events as they come.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the answer to this file, as JSON.")] = None,
    as_json: _Json = False,
) -> None:
    """Show the history of this computer, the newest first."""
    if ctx.invoked_subcommand is not None:
        return
    from computer_linker.cli.history_text import follow_events, print_view
    from computer_linker.cli.owner import ask
    from computer_linker.owner.history.list import HistoryView, ListInput, history_list, query_of
    from computer_linker.registry.validation import explain_validation

    if follow:
        follow_events(_history(), scope=scope, query=query_of(query, since), as_json=as_json)
        return
    try:
        with explain_validation("history"):
            wanted = {"view": view, "scope": scope, "since": since, "query": query, "limit": limit}
            given = ListInput.from_wire(wanted)
    except InvalidRequest as error:
        raise CliError(error.message, "computer-linker history --help", 2) from None
    found = ask(history_list, given, HistoryView)
    found = found.model_copy(update={"events": list(_with_running(found.events))})
    if output is not None:
        _write(output, _pretty(found.to_wire()))
    elif as_json or view in ("debug_bundle", "verify"):
        print_json(found.to_wire())
    else:
        print_view(_rows(found, given) if view in ("last", "timeline") else found)


def _rows(found: "HistoryView", given: "ListInput") -> "HistoryView":
    """The view with as many rows as were asked for: a part that the row of its whole shows has none of its own."""
    from computer_linker.audit.parts import is_part, without_parts
    from computer_linker.cli.owner import ask
    from computer_linker.owner.history.list import MAX_EVENTS, HistoryView, history_list

    rows, asked = without_parts(found.events), given.limit
    if rows and is_part(rows[-1]) and found.next_cursor is not None:
        # Its whole began before it, and is the next older one.
        asked = min(asked + _OLDER, MAX_EVENTS)
        found = ask(history_list, given.model_copy(update={"limit": asked}), HistoryView)
        rows = without_parts(found.events)
    while len(rows) < given.limit and found.next_cursor is not None and asked < MAX_EVENTS:
        asked = min(asked + given.limit - len(rows), MAX_EVENTS)
        found = ask(history_list, given.model_copy(update={"limit": asked}), HistoryView)
        rows = without_parts(found.events)
    return found.model_copy(update={"events": list(_with_running(rows[: given.limit]))})


def _with_running(events: "Iterable[HistoryEvent]") -> "Iterator[HistoryEvent]":
    """The events, with those that the service runs now as running: a reader of the files sees only that they have no outcome."""
    from computer_linker.cli.owner import ask
    from computer_linker.owner.call.list import RunningCalls, call_list

    running: set[str] | None = None
    for event in events:
        if event["outcome"] == "unknown":
            if running is None:
                running = set()
                with suppress(CliError, LinkError):
                    running = {call.operation for call in ask(call_list, None, RunningCalls).calls}
            if event["operationId"] in running:
                event["outcome"] = "running"
        yield event


def _export(
    format: Annotated[str, typer.Option(help="jsonl or csv.")] = "jsonl",
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of stdout.")] = None,
    scope: _Scope = None,
    since: _Since = None,
    query: _Query = None,
) -> None:
    """Write every event that fits, oldest first, as JSON lines or CSV."""
    from computer_linker.cli.history_text import export

    if format not in ("jsonl", "csv"):
        raise CliError(f"there is no export format {format!r}", "jsonl and csv are there", exit_code=2)
    count = export(_events(scope, since, query), format, output)
    note(f"{count} events exported.")


def _timeline(
    html: Annotated[Path, typer.Option(help="Write one self-contained page to this file.")],
    scope: _Scope = None,
    since: _Since = None,
    query: _Query = None,
) -> None:
    """Draw the history: a row for each client, each event a mark, with filters and details."""
    from collections import deque

    from computer_linker.audit.page import MAX_EVENTS, timeline_page

    kept: deque[HistoryEvent] = deque(maxlen=MAX_EVENTS)
    count = 0
    for event in _events(scope, since, query):
        kept.append(event)
        count += 1
    seen = thumbnails({str(event[name]) for event in kept for name in ("operationId", "parent") if event.get(name)})
    _write(html, timeline_page(kept, title="History of this computer", left_out=count - len(kept), pictures=seen))
    note(f"{len(kept)} events drawn in {html}.")


def _history() -> "HistoryFolder":
    from computer_linker.audit.history import HistoryFolder

    folder = state_home() / "audit"
    if not HistoryFolder.exists(folder):
        raise CliError("there is no history yet", "computer-linker start FOLDER begins one")
    return HistoryFolder(folder)


def _events(scope: str | None, since: str | None, query: str | None) -> "Iterator[HistoryEvent]":
    from computer_linker.audit.history import every_event
    from computer_linker.audit.query import parse, within
    from computer_linker.owner.history.list import query_of

    history = _history()
    history.index.catch_up()
    return _with_running(every_event(history, within(parse(query_of(query, since)), None, scope)))


def _pretty(value: object) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read: it holds names of files and commands."""
    from computer_linker.cli.history_text import private_file

    try:
        with private_file(path) as file:
            file.write(text)
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", "choose another file") from error


_MAX_PICTURES = 150
_SIDE = 320
_OLDER = 10


def thumbnails(operations: Collection[str]) -> dict[str, list[str]]:
    """Pictures as data addresses, by operation or execution; none where nothing is kept or no picture can be made smaller."""
    from computer_linker.artifacts.store import ArtifactStore, Filter

    folder = state_home() / "artifacts"
    if not (folder / "artifacts.db").is_file():
        return {}
    store = ArtifactStore(folder, only_to_read=True)
    found: dict[str, list[str]] = {}
    try:
        shown = [one for one in store.listed(Filter(kind="screenshot"), 2000) if one.operation in operations]
        for one in reversed(shown[:_MAX_PICTURES]):
            small = _smaller(store.content(one))
            if small:
                found.setdefault(one.operation, []).append("data:image/jpeg;base64," + base64.b64encode(small).decode())
    finally:
        store.close()
    return found


def _smaller(picture: bytes) -> bytes:
    try:
        from PIL import Image
    except ImportError:
        return b""
    out = io.BytesIO()
    try:
        with Image.open(io.BytesIO(picture), formats=("PNG", "JPEG", "WEBP")) as image:
            image.thumbnail((_SIDE, _SIDE))
            image.convert("RGB").save(out, "JPEG", quality=70)
    except (OSError, ValueError, Image.DecompressionBombError):
        return b""
    return out.getvalue()
