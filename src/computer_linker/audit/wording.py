"""Events in plain English, the same for the command line and the page: who, what, with which outcome, how long."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from computer_linker.model.event import NOT_SHOWN, TOO_MANY, WITHDRAWN
from computer_linker.model.history import HistoryApproval, HistoryEvent
from computer_linker.model.ids import short_id
from computer_linker.policy.visible_text import client_label, principal_label

PHRASES = {
    "app.close": "closed the application", "app.focus": "focused the application", "app.list": "listed applications",
    "app.open": "opened the application", "approvals.allow": "approved",
    "approvals.allow_client": "let a client approve", "approvals.close": "closed approval pages", "approvals.deny": "denied",
    "approvals.disallow_client": "let a client approve no more", "approvals.open": "opened the approval page",
    "approvals.phone": "made a link to the approval page",
    "approvals.revoke": "ended standing approvals", "artifact.attach": "kept as evidence",
    "artifact.capture": "kept a picture", "artifact.ingest": "kept evidence", "artifact.list": "listed evidence",
    "artifact.read": "read evidence", "backend.status": "looked at the backends", "batch.run": "ran a batch",
    "browser.check": "ticked a box", "browser.click": "clicked in the browser", "browser.close": "closed the browser",
    "browser.console": "read the browser's console", "browser.date": "chose a date",
    "browser.dialog": "answered a page's dialog", "browser.fill": "filled a field",
    "browser.har": "recorded network traffic of", "browser.open": "opened a page", "browser.pdf": "printed a page",
    "browser.press": "pressed a key in the browser", "browser.record": "recorded the browser",
    "browser.screenshot": "took a picture of a page", "browser.select": "chose an option",
    "browser.snapshot": "looked at a page", "browser.text": "read a page", "browser.trace": "traced the browser",
    "browser.upload": "uploaded files", "browser.wait": "waited for a page", "call.stop": "stopped the call",
    "client.remove": "took a client's setup back",
    "client.setup": "set up a client", "clipboard.read": "read the clipboard", "clipboard.write": "wrote the clipboard",
    "code.context": "looked at the project", "code.outline": "outlined", "code.search_symbols": "searched symbols in",
    "codex.end": "its agent ended", "codex.list": "listed agent sessions", "codex.read": "read the agent session",
    "codex.run": "ran an agent in", "codex.start": "started an agent in", "codex.stop": "stopped the agent session",
    "command.list": "listed processes", "command.read": "read output of", "command.run": "ran", "command.send": "typed into",
    "command.start": "started", "command.stop": "stopped", "computer.explain": "asked what is allowed",
    "config.set": "changed the config", "confirm.issue": "asked for an approval", "confirm.list": "listed approvals",
    "desktop.abort": "aborted its acts", "desktop.click": "clicked", "desktop.drag": "dragged",
    "desktop.find": "looked for a control", "desktop.hotkey": "pressed keys", "desktop.move": "moved the pointer",
    "desktop.observe": "looked at the desktop", "desktop.press": "pressed a key", "desktop.scroll": "scrolled",
    "desktop.type_text": "typed text", "desktop.wait_until": "waited for the desktop", "doctor.fix": "repaired the setup",
    "file.copy": "copied", "file.create": "created", "file.delete": "deleted", "file.find": "looked for files in",
    "file.list": "listed", "file.mkdir": "made the folder", "file.move": "moved", "file.patch": "patched",
    "file.read": "read", "file.read_many": "read several files", "file.search": "searched in", "file.stat": "looked at",
    "file.tree": "listed the tree of", "file.undo": "took back the change of", "file.write": "wrote",
    "fleet.join": "joined a fleet", "fleet.leave": "left the fleet", "get_computer_info": "asked about this computer",
    "get_operation_history": "read the history", "git.commit": "committed", "git.diff": "read the git diff of",
    "git.log": "read the git log of", "git.show": "read a commit of", "git.stage": "staged",
    "git.status": "read the git status of", "git.unstage": "unstaged", "git.worktree_create": "made a worktree of",
    "git.worktree_list": "listed worktrees of", "halt": "halted the desktop", "history.connections": "read the history",
    "history.debug_bundle": "made a debug bundle", "history.failed_replay": "read what failed",
    "history.last": "read the history", "history.prune": "pruned the history", "history.sessions": "read the history",
    "history.summary": "read the history", "history.timeline": "read the history", "history.verify": "verified the history",
    "hub.forget": "removed a machine", "hub.invite": "invited a machine", "hub.start": "started a hub",
    "hub.stop": "stopped the hub", "hub.trust": "trusted a machine", "network.connect": "connected to",
    "oauth.consent": "was given access",
    "package.list": "listed scripts of", "package.run": "ran", "package.start": "started", "pause": "paused every client",
    "peer.accept": "accepted a computer's changes", "peer.connect": "tried to connect",
    "peer.copy": "copied between computers", "peer.listen": "changed the peer port", "peer.pair": "paired a computer",
    "peer.remove": "removed a computer", "principal.end": "was ended with what it ran", "process.stop": "stopped",
    "proof.attach": "kept as evidence", "proof.capture": "kept a picture", "result.read": "read a kept result",
    "resume": "resumed the desktop", "scope.add": "added the scope", "scope.allow": "allowed commands in the scope",
    "scope.allow_host": "allowed a host in the scope",
    "scope.confirm": "confirmed the scope", "scope.deny": "denied commands in the scope",
    "scope.deny_host": "took a host from the scope", "scope.edit": "changed the scope",
    "scope.remove": "removed the scope", "screen.capture": "took a screenshot of",
    "screen.capture_process": "took a picture of the process", "screen.capture_window": "took a picture of the window",
    "screen.list": "listed displays and windows", "screen.ocr": "read the text on", "screen.record": "recorded the screen",
    "service.install": "installed the service", "service.start": "started the service",
    "service.uninstall": "uninstalled the service",
    "session.open": "connected", "sessions.revoke": "ended the sessions of", "setup": "set this computer up",
    "stop": "stopped the service",
    "token.rotate": "made a new owner token", "tunnel.start": "opened a tunnel", "tunnel.stop": "closed the tunnel",
    "ui.tree": "read the controls of", "undo": "took back the change of", "unpause": "let clients work again",
    "view.drop": "dropped the view", "view.keep": "kept changes of the view", "view.list": "listed views",
    "view.show": "looked at the view", "window.close": "closed the window", "window.focus": "focused the window",
    "window.list": "listed windows", "window.move": "moved the window",
}  # fmt: skip
"""Acts by operation. One that is not here is shown by its name."""
_TO = dict(
    pair.split("/")
    for pair in """
    aborted/abort accepted/accept added/add allowed/allow answered/answer approved/approve asked/ask changed/change chose/choose
    clicked/click closed/close committed/commit confirmed/confirm copied/copy created/create deleted/delete denied/deny
    dragged/drag dropped/drop ended/end filled/fill focused/focus halted/halt installed/install invited/invite joined/join
    kept/keep left/leave let/let listed/list looked/look made/make moved/move opened/open outlined/outline paired/pair
    patched/patch paused/pause pressed/press printed/print pruned/prune ran/run read/read recorded/record removed/remove
    repaired/repair resumed/resume scrolled/scroll searched/search sent/send set/set staged/stage started/start stopped/stop
    ticked/tick took/take traced/trace trusted/trust typed/type uninstalled/uninstall unstaged/unstage uploaded/upload
    verified/verify waited/wait wrote/write connected/connect""".split()
)
"""The acts of `PHRASES` as attempts, by their first word."""
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
    "protected": "a protected file",
    "path_out_of_scope": "outside the scope",
    "permission_denied": "not allowed",
    "paused": "clients are paused",
    "stopped": "stopped by the owner",
    "grant": "not granted to this client",
    "unknown_token": "wrong credential",
}
_EFFECTS = {"partial": "partly done", "unverifiable": "done, not verified", "suspected_noop": "no effect seen"}
_UNSHOWN = ("digest", "key_sha256", "hub_sha256", "changed")
"""Facts that only `history show` has: digests, and what a change of the config repeats."""
_MAX_FACT = 80
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
    if client and not client.startswith("["):
        return client_label(client)
    return principal_label(principal or "unknown")


def what(event: HistoryEvent) -> str:
    """The act and its object: `ran npm test`, `wrote notes.txt`; `tried to write notes.txt` where it did not happen."""
    op = event["op"]
    act = PHRASES.get(op, op)
    if not op:
        act = "sent a request" if event["outcome"] == "refused" else "sent a request that cannot be read"
    elif op.startswith("["):
        act = "asked for an unknown operation"
    elif event["summary"].get("way") == "dialog":
        act = f"{'refused' if op == 'approvals.deny' else 'approved'} in its own dialog"
    first, space, rest = act.partition(" ")
    if _did_not_happen(event) and first in _TO:
        act = f"tried to {_TO[first]}{space}{rest}"
    about = _object(event)
    if not about:
        act = act.removesuffix(" of").removesuffix(" in")
    return f"{act} {about}".strip()


def outcome(event: HistoryEvent) -> str:
    """The outcome with its reason; a program that failed is not `done`."""
    code = event["errorCode"]
    match event["outcome"]:
        case "done":
            return _ended(event)
        case "refused":
            reason = event["reason"] or code or ""
            return f"refused: {_REASONS.get(reason, _plain(reason))}"
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
    """The path, the command line, or what an owner's act was about."""
    if event["commandPreview"]:
        return event["commandPreview"]
    if event["target"] not in (None, "", "."):
        return str(event["target"])
    if event["op"] in _OBJECTS:
        return _OBJECTS[event["op"]](event["summary"])
    if event["scope"]:
        return event["scope"] if event["target"] is not None else ""
    return _facts(event["summary"])


def _host(summary: Mapping[str, object]) -> str:
    return f"{summary.get('host') or ''}:{summary.get('port') or ''}".rstrip(":")


def _undone(summary: Mapping[str, object]) -> str:
    """`notes.txt and 2 more (3Q7XK2M)`: what was put back, and the operation that had changed it."""
    place = "the config" if summary.get("config") else _files(summary)
    operation = _short(summary.get("undone"))
    return f"{place} ({operation})" if place else operation


def _files(summary: Mapping[str, object]) -> str:
    """`notes.txt and 2 more`: the first file, and how many there were."""
    path, files = str(summary.get("path") or ""), summary.get("files")
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
    """`until 2026-11-17 19:56 UTC, 2 stopped`"""
    until, stopped = summary.get("until"), summary.get("stopped")
    parts = [f"until {str(until)[:16].replace('T', ' ')} UTC" if until else "", f"{stopped} stopped" if stopped else ""]
    return ", ".join(filter(None, parts))


def _rule(summary: Mapping[str, object]) -> str:
    """`app: npm test *`"""
    return f"{summary.get('scope') or ''}: {summary.get('command') or ''}".removesuffix(": ")


def _placed(summary: Mapping[str, object]) -> str:
    """`app for /home/me/app`"""
    return f"{summary.get('scope') or ''} for {summary.get('root') or ''}".removesuffix(" for ")


_OBJECTS: dict[str, Callable[[Mapping[str, object]], str]] = {
    "call.stop": _stopped,
    "config.set": _changed,
    "codex.end": lambda summary: str(summary.get("sessionId") or ""),
    "file.undo": _undone,
    "git.commit": _files,
    "git.stage": _files,
    "git.unstage": _files,
    "network.connect": _host,
    "pause": _until,
    "scope.add": _placed,
    "scope.allow": _rule,
    "scope.deny": _rule,
    "scope.edit": _changed,
    "service.start": lambda summary: f"at {summary.get('address') or 'its private socket alone'}",
    "sessions.revoke": _ended_sessions,
    "setup": lambda summary: "",
    "undo": _undone,
}
"""What an event was about, of operations whose summary has it."""


def _facts(summary: Mapping[str, object]) -> str:
    """What an owner's act was about: the request that was answered, or the scope and every other fact but masked ones."""
    facts = {name: str(value)[:_MAX_FACT] for name, value in summary.items() if value is not None}
    if "requests" in facts and "asker" in facts:
        return f"{facts['requests']} requests of {facts['asker']}"
    if "operation" in facts and "inScope" in facts:
        return f"the request {_answered(facts)}"
    scope = facts.pop("scope", "")
    rest = [f"{name}={v}" for name, v in facts.items() if name not in _UNSHOWN and not v.startswith("[")]
    return " ".join([scope, *rest]).strip()


def _answered(facts: Mapping[str, str]) -> str:
    """`file.write c.txt in app of editor/1 (shape)`: the request that an answer was about."""
    about, asker = facts.get("command") or facts.get("path"), facts.get("asker")
    parts = [facts["operation"], about, f"in {facts['inScope']}", asker and f"of {asker}"]
    extent = facts.get("extent", "once")
    return " ".join(part for part in (*parts, "" if extent == "once" else f"({extent})") if part)


def _plain(word: str) -> str:
    return word.replace("_", " ")
