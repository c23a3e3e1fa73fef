"""Events in plain English, the same for the command line and the page: who, what, with which outcome, how long."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from computer_linker.audit.phrases import attempt, filled, phrases
from computer_linker.audit.redact import PATH_FACTS, has_path, is_digest
from computer_linker.model.event import NOT_SHOWN, TOO_MANY, WITHDRAWN
from computer_linker.model.history import HistoryApproval, HistoryEvent
from computer_linker.model.ids import short_id
from computer_linker.model.times import local
from computer_linker.policy.visible_text import client_label, principal_label

_DANGLING = re.compile(r"( (of|in|to|for|at|by|from)|:)+\Z")
"""What led to an object that is not known."""
_UNASKED = ("confirm_required", "denied_by_person", "no_answer")
_MAYBE_BEGUN = (None, "execution_failed", "timeout", "aborted")
"""Failures after which it may have had an effect."""
_REASONS = {
    "allowedCommands": "not an allowed command",
    "deniedCommands": "a denied command",
    "allowShell": "shell lines are not allowed",
    "sandbox": "no sandbox to hold it",
    "network": "no network for it",
    "hosts": "not in the list of hosts",
    "elevation": "the scope runs nothing as the superuser",
    "config": "config.json is not valid",
    "protected": "a protected file",
    "sensitive": "a file that usually holds a secret",
    "path_out_of_scope": "outside the scope",
    "permission_denied": "not allowed",
    "paused": "clients are paused",
    "stopped": "stopped by the owner",
    "grant": "not granted to this client",
    "unknown_token": "wrong credential",
}
_EFFECTS = {"partial": "partly done", "unverifiable": "done, not verified", "suspected_noop": "no effect seen"}
_ON_A_VIEW = ("command.", "package.", "codex.")
"""Operations whose changes may be held apart, until they are kept or dropped."""
_MAX_FACT = 80
_PLAIN = re.compile(r"[^\s,;()\"'`]*")
"""What cannot be taken for more than one name."""
_FROM_CLIENTS = ("target", "host", "site", "program", "role", "op", "confirms")
_ULID = 26


class Described(NamedTuple):
    """One event for a person to read."""

    id: str
    who: str
    scope: str
    what: str
    outcome: str
    took: str


def described(event: HistoryEvent) -> Described:
    """The event in plain English."""
    identity, place = short_id(event["operationId"]), event["scope"] or ""
    # A name that no scope has is kept as a digest: it may be any text of the caller.
    place = "(unknown)" if place.startswith("[") and event["errorCode"] == "unknown_scope" else place
    return Described(identity, who(event), place, what(event), outcome(event), took(event["durationMs"]))


def who(event: HistoryEvent) -> str:
    """The client by its name; the owner's own command line is `owner`."""
    principal = event["principal"] or ""
    name = f"unknown ({event['connection']})" if principal == "unauthenticated" else person(principal, event["client"])
    machine = event.get("machine")
    return f"{name} on {machine}" if machine else name


def process_label(command: str, name: str | None) -> str:
    """A process by its command; the name that its client gave it is beside, and never instead."""
    return f'{command} (called "{name}")' if name else command


def person(principal: str, client: str | None) -> str:
    """Who calls, as every list names them: `owner`, the name a client gives itself as a label, or the principal."""
    if principal.startswith("cli:"):
        return "owner"
    if client and not is_digest(client):
        return client_label(client)
    return principal_label(principal or "unknown")


def what(event: HistoryEvent) -> str:
    """The act and its object: `ran npm test`, `wrote notes.txt`; `tried to write notes.txt` where it did not happen."""
    act, is_whole = _act(event)
    if _did_not_happen(event):
        act = attempt(act) or act
    about = "" if is_whole else _object(event)
    if not about:
        act = _DANGLING.sub("", act)
    return f"{act} {about}".strip()


def _act(event: HistoryEvent) -> tuple[str, bool]:
    """What was done, and whether that names its object already."""
    op = event["op"]
    if not op:
        return ("sent a request" if event["outcome"] == "refused" else "sent a request that cannot be read"), False
    if op.startswith("["):
        return "asked for an unknown operation", False
    text = phrases().get(op, op)
    if event["summary"].get("way") == "dialog":
        text = f"{'refused' if op == 'approvals.deny' else 'approved'} in its own dialog {{request}}"
    return filled(text, partial(_fact, event))


def outcome(event: HistoryEvent) -> str:
    """The outcome with its reason; a program that failed is not `done`."""
    code = event["errorCode"]
    match event["outcome"]:
        case "done":
            on_view = event["op"].startswith(_ON_A_VIEW) and event["summary"].get("viewId")
            return f"{_ended(event)}, on a view" if on_view else _ended(event)
        case "refused":
            reason, step = event["reason"] or code or "", event["summary"].get("step")
            which = f"step {step}: " if isinstance(step, int) else ""
            return f"refused: {which}{_REASONS.get(reason, _plain(reason).partition('. ')[0])}"
        case "unknown":
            return "unknown: the service ended"
        case "changed":
            return "this record was changed"
        case "failed" if (steps := _steps_done(event)) is not None:
            return steps
        case "failed" if code == "confirm_required":
            return "refused: it needs your yes"
        case "failed" if _is_one_too_many(event):
            return "not shown to you: too many waited"
        case "failed" if code in _UNASKED or _is_no(event):
            given = event["approval"]
            if given is None and NOT_SHOWN in (event["reason"] or ""):
                return "not shown to you, after several noes"
            return _plain(code or "denied") if given is None else _denied(given)
        case "failed" if event["reason"] == WITHDRAWN:
            return WITHDRAWN
        case "failed":
            # Where a person is asked, the reason is why they are.
            why = None if event["decision"] == "ask" else event["reason"]
            return f"failed: {why or _plain(code or 'error')}"
    return event["outcome"]


def took(duration_ms: float | None) -> str:
    """A duration in at most six characters."""
    if duration_ms is None:
        return ""
    if duration_ms < 1000:
        return f"{duration_ms:.0f}ms"
    seconds = duration_ms / 1000
    if seconds < 100:
        return f"{seconds:.1f}s"
    return f"{seconds / 60:.0f}min" if seconds < 6000 else f"{seconds / 3600:.1f}h"


def approval_phrase(event: HistoryEvent) -> str | None:
    """Who approved or denied it, where and for how much; None where no person was asked."""
    given = event["approval"]
    if given is None:
        return None
    if given["said"] == "no":
        return f"{_denied(given)} ({given['way']}, {given['extent']})"
    return f"approved by {_by(given)} ({given['way']}, {given['extent']})"


def _denied(given: HistoryApproval) -> str:
    """Who said no. A client's dialog is the client's: the owner may not have seen it."""
    return "refused by its own dialog" if given["way"] == "dialog" else f"denied by {_by(given)}"


def _by(given: HistoryApproval) -> str:
    """Who answered. A client's dialog has the client's label already."""
    return given["by"] if given["way"] == "dialog" else person(given["by"], None)


def _ended(event: HistoryEvent) -> str:
    summary = event["summary"]
    if event["op"] in ("codex.run", "codex.end") and summary.get("status") not in (None, "completed"):
        return _plain(str(summary["status"]))
    if summary.get("timedOut"):
        return "timed out"
    if summary.get("exitCode"):
        return f"exit {summary['exitCode']}"
    if "exitCode" in summary or summary.get("unchanged"):
        return "done" if "exitCode" in summary else "done, nothing changed"
    return _EFFECTS.get(event["effect"] or "", "done")


def _steps_done(event: HistoryEvent) -> str | None:
    """`2 of 4 steps done; 1 failed: no yes`: how far a batch came; None where none of its steps was done."""
    steps, ran, failed = (event["summary"].get(name) for name in ("steps", "operations", "failed"))
    if not isinstance(steps, int) or not isinstance(ran, int) or not isinstance(failed, int) or ran <= failed:
        return None
    if not failed:
        return f"{ran} of {steps} steps done, then stopped"
    code = event["errorCode"] or "an error"
    why = "no yes" if code == "confirm_required" else _plain(code)
    return f"{ran - failed} of {steps} steps done; {failed} failed: {why}"


def _is_one_too_many(event: HistoryEvent) -> bool:
    return event["errorCode"] == "limit_exceeded" and TOO_MANY in (event["reason"] or "")


def _did_not_happen(event: HistoryEvent) -> bool:
    """Whether it was refused, or failed before it had an effect. A batch may have run steps before the one that failed."""
    if _steps_done(event) is not None:
        return False
    if event["outcome"] == "refused" or event["errorCode"] in _UNASKED or event["reason"] == WITHDRAWN:
        return True
    is_batch_begun = event["op"] == "batch.run" and "steps" in event["summary"]
    is_open = event["errorCode"] in _MAYBE_BEGUN or event["effect"] is not None or is_batch_begun
    return event["outcome"] == "failed" and not is_open


def _is_no(event: HistoryEvent) -> bool:
    return event["approval"] is not None and event["approval"]["said"] == "no"


def _object(event: HistoryEvent) -> str:
    """The path or the command line; the scope for an act on all of it."""
    if event["commandPreview"]:
        return event["commandPreview"]
    if event["target"] in (None, "", "."):
        return event["scope"] if event["target"] is not None else ""
    return _fact(event, "target")


def _fact(event: HistoryEvent, name: str) -> str:
    """One fact of an event for its phrase; empty where it is not known, or kept as a digest alone.

    A path is never left out: a client could hide what it did by the name that it gives a file.
    """
    if name in _MADE:
        return _MADE[name](event["summary"])
    value = event["target"] if name == "target" else event["summary"].get(name)
    text = "" if value is None else str(value) if name == "target" else str(value)[:_MAX_FACT]
    is_path = name in PATH_FACTS or (name == "target" and has_path(event["op"] or ""))
    if is_digest(text) and not is_path:
        return ""
    return _apart(text) if is_path or name in _FROM_CLIENTS else text


def _apart(text: str) -> str:
    """A name that a client chose, in quotes where it could run on into the sentence that it stands in."""
    return text if _PLAIN.fullmatch(text) else f'"{text.replace(chr(34), chr(39))}"'


def _undone(summary: Mapping[str, object]) -> str:
    """`notes.txt and 2 more (3Q7XK2M)`: what was put back, and the operation that had changed it."""
    place = "the config" if summary.get("config") else _files(summary)
    operation = _short(summary.get("undone"))
    return f"{place} ({operation})" if place else operation


def _files(summary: Mapping[str, object]) -> str:
    """`notes.txt and 2 more`: the first file, and how many there were."""
    path, files = _apart(str(summary.get("path") or "")), summary.get("files")
    return f"{path} and {files - 1} more" if path and isinstance(files, int) and files > 1 else path


def _stopped(summary: Mapping[str, object]) -> str:
    return f"{_short(summary.get('stopped'))} of {_labels(summary)}".strip().removesuffix(" of")


def _ended_sessions(summary: Mapping[str, object]) -> str:
    """`editor/1 (session_5f…)`, or the clients and how many sessions they had."""
    count, session = summary.get("sessions"), summary.get("session")
    about = str(session or (f"{count} sessions" if isinstance(count, int) and count != 1 else ""))
    return f"{_labels(summary)} ({about})".removesuffix(" ()").strip()


def _labels(summary: Mapping[str, object]) -> str:
    """Clients by their labels: no client has another's name in its own."""
    return ", ".join(client_label(name) for name in str(summary.get("clients") or "").split(", ") if name)


def _short(operation: object) -> str:
    text = str(operation or "")
    return short_id(text) if len(text) == _ULID else text[:_MAX_FACT]


def _changed(summary: Mapping[str, object]) -> str:
    """`app: confirm all -> never`: the fields of the config that were changed; before a change, the scope."""
    found = summary.get("changed") or summary.get("scope") or summary.get("setting")
    return str(found or "").removeprefix("config: ")


def _until(summary: Mapping[str, object]) -> str:
    """`until 2026-11-17 19:56, 2 stopped`, in the local time"""
    until, stopped = summary.get("until"), summary.get("stopped")
    parts = [f"until {local(str(until))[:16]}" if until else "", f"{stopped} stopped" if stopped else ""]
    return ", ".join(filter(None, parts))


def _answered(summary: Mapping[str, object]) -> str:
    """`the request to write c.txt in app of editor/1 (shape)`: what an answer was about, or how many requests."""
    facts = {name: str(value)[:_MAX_FACT] for name, value in summary.items() if value is not None}
    asker = facts.get("asker")
    if "operation" not in facts or "inScope" not in facts:
        return f"{facts.get('requests', 'the')} requests of {asker}" if asker else ""
    steps = f": {_steps(summary)}" if "does" in facts else ""
    about, extent = facts.get("command") or _apart(facts.get("path", "")), facts.get("extent", "once")
    parts = [_to_do(facts["operation"]) + steps, about, f"in {facts['inScope']}", asker and f"of {asker}"]
    return " ".join(filter(None, ("the request", *parts, "" if extent == "once" else f"({extent})")))


def _steps(summary: Mapping[str, object]) -> str:
    """`write a.txt; run make`: the steps of a batch."""
    steps = (step.partition(" ") for step in str(summary.get("does") or "").split("; "))
    return "; ".join(f"{_to_do(op).removeprefix('to ')} {about}".strip() for op, _, about in steps)


def _to_do(op: str) -> str:
    """`to write` for file.write: an operation as what is wanted; its own name where it has no phrase."""
    act = _DANGLING.sub("", filled(phrases().get(op, ""), lambda _: "")[0])
    return (attempt(act) or op).removeprefix("tried ")


_MADE: dict[str, Callable[[Mapping[str, object]], str]] = {
    "call": _stopped,
    "change": _changed,
    "does": _steps,
    "ended": _ended_sessions,
    "place": lambda summary: str(summary.get("address") or "its private socket alone"),
    "putBack": _undone,
    "request": _answered,
    "these": _files,
    "until": _until,
}
"""Facts that are made of several."""


def _plain(word: str) -> str:
    return word.replace("_", " ")
