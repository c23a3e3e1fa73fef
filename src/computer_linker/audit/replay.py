"""Failed operations as templates to try again, and what to do next. What was not kept is requested, never guessed."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from computer_linker.audit.pages import Page
from computer_linker.model.history import HistoryEvent, ReplayTemplate, Suggestion


class Needs(NamedTuple):
    """Which parts of a request an operation cannot do without."""

    target: bool
    input: bool


NeedsOf = Callable[[str], Needs | None]
"""Returns what an operation needs; None for one that does not exist."""


def unknown_needs(_op: str) -> Needs | None:
    """For a reader that has no catalogue of operations: nothing can be sent again as it is."""
    return None


_STEP_RESULT = re.compile(r"\$\d+\.")
"""A field of an earlier step's result, which exists only within its batch."""
_LIVE = ("screen.", "desktop.", "clipboard.", "window.", "app.", "ui.", "browser.")
_SCRIPTS = ("package.run", "package.start")
_OBSERVE = "Observe again: the desktop has changed since."
_SNAPSHOT = "Take a new browser.snapshot: the page has changed since."
_NEXT = {
    "permission_denied": "It is not allowed: computer.explain says by what, and the owner can change it.",
    "path_out_of_scope": "Use a path relative to the scope's root; get_computer_info lists the scopes.",
    "already_exists": "Choose another name, or look at what is there first.",
    "conflict": "Look at what is there now: it has changed since.",
    "timeout": "Ask for less at a time, or try again later.",
    "confirm_required": "A person has to approve this: issue a confirmation and repeat the call with its token.",
    "denied_by_person": "The owner said no: ask the owner before anything like it is tried again.",
    "no_answer": "The owner did not answer: ask the owner, then try again.",
    "paused": "The owner has paused every client: wait until the owner ends it.",
    "invalid_request": "See the operation's schema in get_computer_info with include operations.",
    "unknown_operation": "get_computer_info with include operations lists the operations.",
    "unknown_scope": "get_computer_info lists the scopes.",
    "limit_exceeded": "Ask for less at a time, or wait for what is running.",
    "stale_reference": "Observe again and use the new reference.",
    "element_not_found": "Observe again: the element may have a new name.",
    "process_not_found": "command.list shows the processes that are there.",
}
_LIST = {
    "file": "file.list or file.find",
    "code": "file.list or file.find",
    "git": "git.status",
    "package": "package.list",
    "command": "command.list",
    "codex": "codex.list",
    "artifact": "artifact.list",
    "window": "window.list",
    "app": "app.list",
    "screen": "screen.list",
    "browser": "browser.snapshot",
}
"""What shows the things that an operation can be about."""
_NEXT_OF = {
    ("file", "conflict"): "Read the file again: it has changed since.",
    ("git", "conflict"): "Look at git.status: the repository has changed since.",
    ("desktop", "conflict"): _OBSERVE,
    ("ui", "conflict"): _OBSERVE,
    ("window", "conflict"): "Look at window.list again: the windows have changed since.",
    ("app", "conflict"): "Look at app.list again: the applications have changed since.",
    ("browser", "conflict"): _SNAPSHOT,
    ("browser", "stale_reference"): _SNAPSHOT,
    ("browser", "element_not_found"): _SNAPSHOT,
    ("file", "already_exists"): "Use file.write to replace it, or another name.",
    ("command", "timeout"): "Try again with a longer timeout, or start it with command.start and read it as it goes.",
    ("package", "timeout"): "Try again with a longer timeout, or start it with package.start and read it as it goes.",
    ("codex", "timeout"): "Try again with a longer timeout, or start it with codex.start and read it as it goes.",
    ("codex", "process_not_found"): "codex.list shows the sessions that are there.",
}


def answer(found: Page, needs_of: NeedsOf) -> dict[str, Any]:
    """The failed events with a template each."""
    return {
        "events": found.events,
        "nextCursor": found.next_cursor,
        "templates": [template(event, needs_of(event["op"])) for event in found.events],
    }


def template(event: HistoryEvent, needs: Needs | None) -> ReplayTemplate:
    """A request to try again; `requiresInput` names what the history did not keep."""
    op = event["op"]
    request: dict[str, Any] = {"scope": event["scope"], "op": op}
    missing: list[str] = []
    target = event["target"]
    if target is not None and _is_whole(target) and not _STEP_RESULT.match(target):
        request["target"] = target
    elif target is not None or (needs is not None and needs.target):
        missing.append("target")
    script = _script(event)
    if script is not None:
        request["input"] = {"script": script}
    elif needs is None or needs.input:
        missing.append("input")
    known = needs is not None and bool(event["scope"]) and not event["scope"].startswith("[")
    live = op.startswith(_LIVE)
    return {
        "operationId": event["operationId"],
        "request": request,
        "requiresInput": missing,
        "replayable": known and not missing and not live,
        "reason": _why(op, known=known, live=live, missing=missing),
    }


def suggestions(events: Sequence[HistoryEvent]) -> list[Suggestion]:
    """What to do next, from the newest events."""
    found: list[Suggestion] = []
    for event in events[:5]:
        advice = advice_on(event)
        if advice is not None:
            found.append({"operationId": event["operationId"], "op": event["op"], "advice": advice})
    if events and events[0]["ok"] and events[0]["effect"] is not None and events[0]["op"].startswith("file."):
        undo = {"scope": events[0]["scope"], "op": "file.undo", "input": {"operationId": events[0]["operationId"]}}
        advice = "This change can be taken back."
        found.append({"operationId": events[0]["operationId"], "op": "file.undo", "advice": advice, "request": undo})
    return found


def advice_on(event: HistoryEvent) -> str | None:
    """What to do about one event; None when there is nothing to say."""
    if event["outcome"] == "unknown":
        return "The service ended before the outcome was known: look at the target before doing it again."
    code, noun = event["errorCode"], event["op"].partition(".")[0]
    if code is None or not event["op"] or not event["scope"]:
        # Without a scope it is no operation: a tool call, or a refused connection.
        return None
    if code == "not_found" and noun in _LIST:
        return f"Look at what is there with {_LIST[noun]}."
    return _NEXT_OF.get((noun, code)) or _NEXT.get(code)


def _script(event: HistoryEvent) -> str | None:
    """The script of a package operation, when it was sent without arguments of its own and its name was kept."""
    script, count = event["summary"].get("script"), event["summary"].get("scriptArguments")
    is_kept = event["op"] in _SCRIPTS and isinstance(script, str) and not script.startswith("[") and count == 0
    return script if is_kept else None


def _is_whole(target: str) -> bool:
    return "[" not in target and "…" not in target and "\\u{" not in target


def _why(op: str, *, known: bool, live: bool, missing: list[str]) -> str:
    if not known:
        return "What was asked for does not exist here."
    if live:
        return "It would see or touch the desktop as it is now, not as it was."
    if missing:
        return f"The history keeps no {' and no '.join(missing)}; supply it to try again."
    return f"{op} can be sent again as it is."
