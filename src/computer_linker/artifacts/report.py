"""A session's evidence as one self-contained page: requests, actions and screenshots. No script, nothing fetched."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Any

from computer_linker.model.artifact import Artifact
from computer_linker.policy.visible_text import escaped, mark_of

MAX_EMBEDDED = 8_000_000
"""Bytes of one picture or video; a larger one is listed with its digest."""
MAX_PAGE = 40_000_000
MAX_TEXT = 60_000
_PICTURES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_VIDEOS = frozenset({"video/webm", "video/mp4"})
_TEXTS = frozenset({"text/plain", "application/json"})
_REFUSED = ("permission_denied", "confirm_required", "denied_by_person", "no_answer")
_EFFECTS = {
    "confirmed": "done, and read back", "partial": "done in part", "unverifiable": "done; its effect cannot be read back",
    "suspected_noop": "delivered, but nothing was seen to change",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """One artifact with its bytes; None where they are left out of the page."""

    artifact: Artifact
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Report:
    """The content of the page."""

    title: str
    computer: str
    made_at: str
    version: str
    asked: str = ""
    events: Sequence[Mapping[str, Any]] = ()
    """As the history has them, with `answered`: what a person said to it."""
    pieces: Sequence[Piece] = ()
    history: str = ""
    """The result of verifying the history."""
    left_out: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)


def report_page(report: Report) -> str:
    """The page. All external values are escaped, and its content security policy lets nothing run or load."""
    style = files("computer_linker.artifacts").joinpath("assets", "report.css").read_text("utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    allowed = f"style-src 'sha256-{digest}'; img-src data:; media-src data:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    parts = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">',
        f"<title>{_text(report.title)}</title>\n<style>{style}</style>\n</head>\n<body>",
        _header(report),
        f"<main>{_steps(report)}{_rest(report)}</main>",
        _footer(report),
        "</body>\n</html>\n",
    )
    return "\n".join(parts)


def _header(report: Report) -> str:
    asked = f'<p class="asked">{_lines(report.asked)}</p>' if report.asked else ""
    facts = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in _facts(report).items() if value)
    return f"<header><h1>{_text(report.title)}</h1>{asked}<dl class=facts>{facts}</dl>{_totals(report)}</header>"


def _facts(report: Report) -> dict[str, str]:
    events = report.events
    span = f"{_clock(events[0]['startedAt'])} to {_clock(events[-1]['startedAt'], with_day=False)}" if events else ""
    clients = sorted({str(event["client"]) for event in events if event.get("client")})
    return {"Computer": report.computer, **report.facts, "Client": ", ".join(clients), "Time": span}


def _totals(report: Report) -> str:
    ended = [_outcome(event) for event in report.events]
    changes = sum(1 for event in report.events if event.get("effect") == "confirmed")
    told = (
        (ended.count("done"), "operations done"),
        (changes, "changes read back"),
        (ended.count("failed") + ended.count("refused") + ended.count("unknown"), "failed or refused"),
        (len(report.pieces), "pieces of evidence"),
    )
    return "<ul class=totals>" + "".join(f"<li><b>{count}</b>{name}</li>" for count, name in told) + "</ul>"


def _steps(report: Report) -> str:
    if not report.events:
        return ""
    places = _shown_with(report.events)
    by_operation: dict[str, list[Piece]] = {}
    for piece in report.pieces:
        by_operation.setdefault(places.get(piece.artifact.operation, ""), []).append(piece)
    several = len({event.get("scope") for event in report.events}) > 1
    rows = "".join(
        _step(event, by_operation.get(str(event["operationId"]), []), with_scope=several) for event in report.events
    )
    left = f'<p class="empty">{report.left_out} earlier operations are left out.</p>' if report.left_out else ""
    return f"<h2>What was done</h2>{left}<ol class=steps>{rows}</ol>"


def _shown_with(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The operation each piece of evidence is shown with: its own, or of an execution of several the one that acted."""
    places: dict[str, str] = {}
    for is_act in (True, False):
        for event in events:
            parent = event.get("parent")
            if parent and bool(event.get("effect")) is is_act:
                places.setdefault(str(parent), str(event["operationId"]))
    return places | {str(event["operationId"]): str(event["operationId"]) for event in events}


def _step(event: Mapping[str, Any], pieces: Sequence[Piece], *, with_scope: bool) -> str:
    outcome = _outcome(event)
    about = _about(event)
    shown = f'<span class="target">{_text(about)}</span>' if about else ""
    took = event.get("durationMs")
    when = _clock(event["startedAt"], with_day=False) + (f" · {_duration(took)}" if took is not None else "")
    seen = f"<div class=seen>{''.join(map(_figure, pieces))}</div>" if pieces else ""
    known = _known(event, outcome, with_scope=with_scope)
    return (
        f'<li class="step {outcome}"><div class=line><span class=op>{_text(str(event["op"]))}</span>{shown}'
        f"<span class=when>{_text(when)}</span></div><p class=known>{known}</p>{seen}</li>"
    )


def _about(event: Mapping[str, Any]) -> str:
    """The command or the target, where the history has it. A digest in place of a redacted value is left out."""
    target = str(event.get("commandPreview") or event.get("target") or "")
    if target and not target.startswith("["):
        return target
    facts = event.get("summary") or {}
    return str(next((facts[name] for name in ("site", "role", "program") if facts.get(name)), ""))


def _known(event: Mapping[str, Any], outcome: str, *, with_scope: bool) -> str:
    match outcome:
        case "done":
            words = _EFFECTS.get(str(event.get("effect") or ""), "done")
        case "failed":
            words = f"failed: {event.get('errorCode')}"
        case "refused":
            words = f"refused: {event.get('errorCode') or 'policy'}"
        case _:
            words = "the service ended before its outcome was known"
    scope = f" in {event['scope']}" if with_scope and event.get("scope") else ""
    answered = f"; {event['answered']}" if event.get("answered") else ""
    return f"<b>{_text(words)}</b>{_text(scope + answered)}"


def _rest(report: Report) -> str:
    """Evidence of operations that are not shown."""
    places = _shown_with(report.events)
    rest = [piece for piece in report.pieces if piece.artifact.operation not in places]
    if not rest and (report.events or report.pieces):
        return ""
    body = (
        f"<div class=seen>{''.join(map(_figure, rest))}</div>" if rest else "<p class=empty>There is no evidence.</p>"
    )
    return f"<h2>{'Also kept' if report.events else 'What was seen'}</h2>{body}"


def _figure(piece: Piece) -> str:
    one = piece.artifact
    facts = [one.kind.replace("_", " "), _size(one.size), f"by {one.backend}" if one.backend else "", one.label]
    caption = (
        f"<b>{_text(_title(one))}</b><br>{_text(' · '.join(fact for fact in facts if fact))}"
        f"<br><code>sha256 {one.sha256[:16]}…</code>"
    )
    return f"<figure>{_body(piece)}<figcaption>{caption}</figcaption></figure>"


def _title(one: Artifact) -> str:
    """The short title: screenshots before and after an act are shown beside it and need no more text."""
    first, _, rest = one.title.partition(" ")
    return first.capitalize() if first in ("before", "after") and " " not in rest else one.title


def _body(piece: Piece) -> str:
    one, content = piece.artifact, piece.content
    if content is None:
        return f"<p>Not embedded: {_text(one.media_type)}, {_size(one.size)}. computer-linker proof show {one.id}</p>"
    if one.media_type in _PICTURES:
        return f'<img src="{_data(piece)}" alt="{_text(one.title)}">'
    if one.media_type in _VIDEOS:
        return f'<video src="{_data(piece)}" controls preload="metadata"></video>'
    cut = content[:MAX_TEXT].decode("utf-8", "replace")
    more = f"\n… {len(content) - MAX_TEXT} bytes more" if len(content) > MAX_TEXT else ""
    return f"<pre class=outcome>{_marked(cut)}{more}</pre>" if one.kind == "view" else f"<pre>{_lines(cut)}{more}</pre>"


def is_shown(artifact: Artifact) -> bool:
    """True when the page shows such an artifact's content, not only its name."""
    if artifact.media_type in _TEXTS:
        return artifact.kind != "browser_trace"
    return artifact.media_type in _PICTURES | _VIDEOS and artifact.size <= MAX_EMBEDDED


def _footer(report: Report) -> str:
    return (
        f"<footer><p>Made by Computer Linker {_text(report.version)} on {_text(_clock(report.made_at))}. {_text(report.history)} "
        "What was typed, read or written is not in the history; evidence is what was kept on purpose.</p></footer>"
    )


def _outcome(event: Mapping[str, Any]) -> str:
    if event.get("decision") == "deny" or event.get("errorCode") in _REFUSED:
        return "refused"
    match event.get("ok"):
        case True:
            return "done"
        case False:
            return "failed"
    return "unknown"


def _data(piece: Piece) -> str:
    return f"data:{piece.artifact.media_type};base64,{base64.b64encode(piece.content or b'').decode()}"


def _text(text: str) -> str:
    return escape(escaped(text), quote=True)


def _lines(text: str) -> str:
    """Text of several lines."""
    return "\n".join(_text(line) for line in text.replace("\r\n", "\n").replace("\t", "    ").split("\n"))


def _marked(text: str) -> str:
    """What a view changed, with its differences in colour."""
    marks = {"+": "ins", "-": "del", "=": "b"}
    found = ((marks.get(mark_of("view.show", line)), _text(line)) for line in text.split("\n"))
    return "\n".join(line if mark is None else f"<{mark}>{line}</{mark}>" for mark, line in found)


def _clock(at: str, *, with_day: bool = True) -> str:
    try:
        moment = datetime.fromisoformat(at).astimezone(UTC)
    except ValueError:
        return at
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC" if with_day else "%H:%M:%S")


def _duration(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _size(size: int) -> str:
    for unit, step in (("MB", 1_000_000), ("kB", 1000)):
        if size >= step:
            return f"{size / step:.1f} {unit}"
    return f"{size} bytes"
