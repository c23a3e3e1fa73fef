"""history: who did what on this computer."""

from pathlib import Path
from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say
from computer_linker.cli.places import state_home

_Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_Scope = Annotated[str | None, typer.Option(help="Only this scope.")]
_Since = Annotated[
    str | None, typer.Option(help="Only from this time on: 2026-11-01, 2026-11-01T08:30Z, or 3d, 12h, 30m.")
]
_Query = Annotated[str | None, typer.Option(help="Words, and terms such as op:file.read ok:false client:x.")]


def register(app: typer.Typer) -> None:
    """Add `history` and its commands."""
    group = typer.Typer(help="Who did what on this computer.", rich_markup_mode=None, invoke_without_command=True)
    app.add_typer(group, name="history")
    group.callback()(_show)
    group.command("export")(_export)
    group.command("verify")(_verify)
    group.command("prune")(_prune)
    group.command("timeline")(_timeline)


def _show(
    ctx: typer.Context,
    view: Annotated[
        str, typer.Option(help="last, timeline, sessions, connections, failed_replay, debug_bundle.")
    ] = "last",
    scope: _Scope = None,
    since: _Since = None,
    query: _Query = None,
    limit: Annotated[int, typer.Option(help="Events to tell at most.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on telling events as they come.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the answer to this file.")] = None,
    as_json: _Json = False,
) -> None:
    """Tell the history of this computer, the newest first."""
    if ctx.invoked_subcommand is not None:
        return
    from computer_linker.audit.views import Question, answer_now
    from computer_linker.cli.history_text import follow_events, tell
    from computer_linker.cli.places import current_config

    history = _history()
    if follow:
        follow_events(history, scope=scope, query=_query(query, since), as_json=as_json)
        return
    question = Question(view, None, scope, limit, _query(query, since))
    config = current_config(state_home()) if view == "debug_bundle" else None
    told = answer_now(history, question, config)
    if output is not None:
        _write(output, _pretty(told))
    elif as_json or view in ("debug_bundle", "failed_replay"):
        print_json(told)
    else:
        tell(told)


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


def _verify(as_json: _Json = False) -> None:
    """Check that the whole history is what was written; the exit code is 1 when it is not."""
    from computer_linker.audit.views import Question, answer_now

    told = answer_now(_history(), Question("verify", None))
    if as_json:
        print_json(told)
    elif told["valid"]:
        say(f"The history is whole: {told['records']} records from number {told['beginsAt']} on.")
    else:
        say(f"The history was changed: first at record {told['firstBad']}, {told['problem']}.")
    if not told["valid"]:
        raise typer.Exit(1)


def _prune(
    older_than: Annotated[str | None, typer.Option(help="Remove what is older: 90d, 12h.")] = None,
    max_size: Annotated[str | None, typer.Option(help="Keep at most this much: 200MB, 1GB.")] = None,
    as_json: _Json = False,
) -> None:
    """Remove old events, whole segments at a time; what stays can still be verified."""
    from computer_linker.audit.prune import prune

    if older_than is None and max_size is None:
        raise CliError("say what to remove", "for example --older-than 90d, or --max-size 200MB", exit_code=2)
    history = _history()
    before = None if older_than is None else _time(older_than)
    removed = prune(history.folder, before=before, max_bytes=None if max_size is None else _bytes(max_size))
    print_json({"removed": removed}) if as_json else say(f"{removed} records removed.")


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
    terms = [query or ""] + ([f"since:{_time(since)}"] if since else [])
    return " ".join(terms).strip() or None


def _time(text: str) -> str:
    from computer_linker.audit.prune import days_ago

    units = {"d": 1.0, "h": 1 / 24, "m": 1 / 1440}
    number, unit = text[:-1], text[-1:]
    if unit in units and number.replace(".", "", 1).isdecimal():
        return days_ago(float(number) * units[unit])
    return text


def _bytes(text: str) -> int:
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
    number, unit = text[:-2], text[-2:].upper()
    if unit in units and number.isdecimal():
        return int(number) * units[unit]
    raise CliError(f"{text!r} is no size", "for example 200MB or 1GB", exit_code=2)


def _pretty(value: Any) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", "choose another file") from error
