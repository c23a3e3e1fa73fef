"""history: who did what on this computer."""

from pathlib import Path
from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json
from computer_linker.cli.places import state_home

_Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_Scope = Annotated[str | None, typer.Option(help="Only this scope.")]
_Since = Annotated[
    str | None, typer.Option(help="Only from this time on: 2026-11-01, 2026-11-01T08:30Z, or 3d, 12h, 30m.")
]
_Query = Annotated[
    str | None, typer.Option(help="Words, and terms such as op:file.read ok:false client:x approved:terminal.")
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
        str, typer.Option(help="last, timeline, sessions, connections, failed_replay, debug_bundle.")
    ] = "last",
    scope: _Scope = None,
    since: _Since = None,
    query: _Query = None,
    limit: Annotated[int, typer.Option(help="Events to print_view at most.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on telling events as they come.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the answer to this file.")] = None,
    as_json: _Json = False,
) -> None:
    """Tell the history of this computer, the newest first."""
    if ctx.invoked_subcommand is not None:
        return
    from computer_linker.audit.views import Question, answer_now
    from computer_linker.cli.history_text import follow_events, print_view
    from computer_linker.cli.places import current_config

    history = _history()
    if follow:
        follow_events(history, scope=scope, query=_query(query, since), as_json=as_json)
        return
    question = Question(view, None, scope, limit, _query(query, since))
    config = current_config(state_home()) if view == "debug_bundle" else None
    found = answer_now(history, question, config)
    if output is not None:
        _write(output, _pretty(found))
    elif as_json or view in ("debug_bundle", "failed_replay"):
        print_json(found)
    else:
        print_view(found)


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
    """Draw the history: the sessions as lanes, each event a mark, with filters."""
    from collections import deque

    from computer_linker.audit.page import MAX_EVENTS, timeline_page
    from computer_linker.cli.thumbnails import thumbnails

    kept: deque[dict[str, Any]] = deque(maxlen=MAX_EVENTS)
    count = 0
    for event in _events(scope, since, query):
        kept.append(event)
        count += 1
    seen = thumbnails({str(event[name]) for event in kept for name in ("operationId", "parent") if event.get(name)})
    _write(html, timeline_page(kept, title="History of this computer", left_out=count - len(kept), pictures=seen))
    note(f"{len(kept)} events drawn in {html}.")


def _history() -> Any:
    from computer_linker.audit.history import HistoryFolder

    folder = state_home() / "audit"
    if not HistoryFolder.exists(folder):
        raise CliError("there is no history yet", "computer-linker start FOLDER begins one")
    return HistoryFolder(folder)


def _events(scope: str | None, since: str | None, query: str | None) -> Any:
    from computer_linker.audit.history import every_event
    from computer_linker.audit.query import parse, within

    history = _history()
    history.index.catch_up()
    return every_event(history, within(parse(_query(query, since)), None, scope))


def _query(query: str | None, since: str | None) -> str | None:
    from computer_linker.audit.prune import time_of

    terms = [query or ""] + ([f"since:{time_of(since)}"] if since else [])
    return " ".join(terms).strip() or None


def _pretty(value: Any) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", "choose another file") from error
