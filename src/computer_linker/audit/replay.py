"""Failed operations as templates to try again, and what to do next. What was not kept is requested, never guessed."""

from typing import Any

from computer_linker.audit.pages import Page

_WITHOUT_INPUT = frozenset(
    [
        *(
            "file.stat",
            "file.list",
            "file.tree",
            "file.read",
            "file.mkdir",
            "file.delete",
            "code.context",
            "code.outline",
        ),
        *("git.status", "git.changes", "git.diff", "git.log", "git.worktree_list", "package.list", "command.list"),
        *("command.read", "command.stop", "codex.list", "codex.read", "codex.stop", "screen.list", "ui.tree"),
        *("window.list", "app.list", "clipboard.read", "confirm.list", "artifact.list", "artifact.read"),
        *("backend.status", "history.last", "history.timeline", "history.sessions", "history.connections"),
        *("history.failed_replay", "history.debug_bundle", "history.verify"),
    ]
)
_LIVE = ("screen.", "desktop.", "clipboard.", "window.", "app.", "ui.")
_NEXT = {
    "permission_denied": "It is not allowed: computer.explain says by what, and the owner can change it.",
    "path_out_of_scope": "Use a path relative to the scope's root; get_computer_info lists the scopes.",
    "not_found": "Look at what is there with file.list or file.find.",
    "already_exists": "Use file.write to replace it, or another name.",
    "conflict": "Read the file again: it has changed since.",
    "timeout": "Try again with a longer timeout, or start it with command.start and read it as it goes.",
    "denied_by_person": "A person refused this. Ask them before you send it again.",
    "no_answer": "Nobody answered in time. Send it again when the owner can answer.",
    "confirm_required": "A person has to approve this: issue a confirmation and repeat the call with its token.",
    "invalid_request": "See the operation's schema in get_computer_info with include operations.",
    "unknown_operation": "get_computer_info with include operations lists the operations.",
    "unknown_scope": "get_computer_info lists the scopes.",
    "limit_exceeded": "Ask for less at a time, or wait for what is running.",
    "stale_reference": "Observe again and use the new reference.",
    "element_not_found": "Observe again: the element may have a new name.",
    "process_not_found": "command.list shows the processes that are there.",
}


def answer(found: Page) -> dict[str, Any]:
    """The failed events with a template each."""
    return {
        "events": found.events,
        "nextCursor": found.next_cursor,
        "templates": [template(event) for event in found.events],
    }


def template(event: dict[str, Any]) -> dict[str, Any]:
    """A request to try again; `requiresInput` names what the history did not keep."""
    op = event["op"]
    request: dict[str, Any] = {"scope": event["scope"], "op": op}
    missing: list[str] = []
    target = event["target"]
    if target is not None and _is_whole(target):
        request["target"] = target
    elif target is not None:
        missing.append("target")
    if op not in _WITHOUT_INPUT:
        missing.append("input")
    known = not op.startswith("[") and not event["scope"].startswith("[")
    live = op.startswith(_LIVE)
    return {
        "operationId": event["operationId"],
        "request": request,
        "requiresInput": missing,
        "replayable": known and not missing and not live,
        "reason": _why(op, known=known, live=live, missing=missing),
    }


def suggestions(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What to do next, from the newest events."""
    found: list[dict[str, Any]] = []
    for event in events[:5]:
        if event["outcome"] == "unknown":
            advice = "The service ended before the outcome was known: look at the target before doing it again."
        elif event["op"] and event["scope"] and event["errorCode"] in _NEXT:
            # Without a scope it is no operation: a tool call, or a refused connection.
            advice = _NEXT[event["errorCode"]]
        else:
            continue
        found.append({"operationId": event["operationId"], "op": event["op"], "advice": advice})
    if events and events[0]["ok"] and events[0]["effect"] is not None and events[0]["op"].startswith("file."):
        undo = {"scope": events[0]["scope"], "op": "file.undo", "input": {"operationId": events[0]["operationId"]}}
        advice = "This change can be taken back."
        found.append({"operationId": events[0]["operationId"], "op": "file.undo", "advice": advice, "request": undo})
    return found


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
