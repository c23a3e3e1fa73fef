"""The phrase of each event in the history: the operations' own, and those of what the service records by itself.

Those of operations are read from `assets/phrases.json`, which `make docs` writes from the operations. The history is shown
without importing them, which takes a second.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

OF_SERVICE = {
    "approvals.open": "opened the approval page[ {page}]",
    "codex.end": "its agent ended[: {sessionId}]",
    "config.edit": "config.json was edited[: {change}]",
    "get_computer_info": "asked about this computer",
    "get_operation_history": "read the history",
    "network.connect": "connected to {host}[:{port}]",
    "oauth.consent": "was given access[ to {groups}]",
    "peer.connect": "tried to connect",
    "principal.end": "was ended with what it ran[ in {scope}]",
    "service.start": "started the service at {place}",
    "session.open": "connected",
}
"""Events that the service writes by itself."""
_TO = dict(
    pair.split("/")
    for pair in """
    aborted/abort accepted/accept added/add allowed/allow answered/answer approved/approve asked/ask changed/change
    chose/choose clicked/click closed/close committed/commit confirmed/confirm connected/connect copied/copy counted/count
    created/create deleted/delete denied/deny dragged/drag dropped/drop edited/edit ended/end filled/fill focused/focus
    formatted/format halted/halt installed/install invited/invite joined/join kept/keep left/leave let/let listed/list
    locked/lock looked/look made/make mapped/map moved/move opened/open outlined/outline paired/pair patched/patch
    paused/pause pressed/press printed/print pruned/prune ran/run read/read recorded/record removed/remove renamed/rename
    repaired/repair resized/resize resumed/resume scrolled/scroll searched/search sent/send set/set sorted/sort staged/stage
    started/start stopped/stop stored/store ticked/tick took/take traced/trace tried/try trusted/trust typed/type
    uninstalled/uninstall unstaged/unstage uploaded/upload used/use verified/verify waited/wait
    watched/watch wrote/write""".split()
)
"""The acts as attempts, by their first word."""
_PART = re.compile(r"\[([^\[\]]*)\]|\{\w+\}")
_SPACE = "\0"
"""Stands for a space of a fact, which is kept, while the phrase is put together."""
_FIELD = re.compile(r"\{(\w+)\}")


@cache
def phrases() -> dict[str, str]:
    """The phrases by operation."""
    made: dict[str, str] = json.loads(files("computer_linker.audit").joinpath("assets", "phrases.json").read_bytes())
    return {**made, **OF_SERVICE}


def attempt(act: str) -> str | None:
    """`tried to write` for `wrote`; None for what is no act."""
    first, space, rest = act.partition(" ")
    if first == "tried":
        return act
    return f"tried to {_TO[first]}{space}{rest}" if first in _TO else None


def filled(text: str, fact: Callable[[str], str]) -> tuple[str, bool]:
    """The phrase with these facts, and whether any of them was known. A part in brackets is left out without all of its facts.

    A fact is put in as it is: whatever a client's text has in it, it is never read as a part of the phrase.
    """
    known: list[str] = []

    def put(found: re.Match[str]) -> str:
        known.append(fact(found[1]))
        return known[-1].replace(" ", _SPACE)

    def part(found: re.Match[str]) -> str:
        text = found[0] if found[1] is None else found[1]
        is_known = found[1] is None or all(fact(name) for name in _FIELD.findall(text))
        return _FIELD.sub(put, text) if is_known else ""

    made = re.sub(r" +", " ", _PART.sub(part, text)).strip()
    return made.replace(_SPACE, " "), any(known)


def fields_in(text: str) -> list[str]:
    """The facts that a phrase names."""
    return _FIELD.findall(text)
