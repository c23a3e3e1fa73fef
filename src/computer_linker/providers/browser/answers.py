"""Parses agent-browser's replies as untrusted input: it runs beside untrusted pages."""

import json
import re
from typing import Any

from computer_linker.errors import Conflict, ElementNotFound, ExecutionFailed, LinkError, ProviderUnavailable, TimedOut
from computer_linker.policy.visible_text import escaped

INSTALL = (
    "Install agent-browser 0.41 or later (npm install -g agent-browser@latest) and Chromium (apt-get install chromium)."
)
_MAX_ERROR = 300
_NEWEST_OPTION = "--omit-command"
"""The option of every batch that only agent-browser 0.41 and later support."""
_GONE = re.compile(r"element not found|could not locate|unknown ref|no element|not attached|stale", re.IGNORECASE)


def results_of(out: str, wanted: int) -> list[dict[str, Any]]:
    """The data of each command of a batch. Raises the error of the first failed one.

    Raises:
        ExecutionFailed: a command failed, or the reply is unknown.
        ProviderUnavailable: the program is too old.
    """
    try:
        reply = json.loads(out)
    except ValueError:
        raise _not_understood() from None
    if type(reply) is dict and reply.get("success") is False:
        if _NEWEST_OPTION in str(reply.get("error")):
            # npm installs an old version where Node is older than the newest version requires.
            raise ProviderUnavailable(
                "The agent-browser that is installed is older than 0.41.", program="agent-browser", reason="too_old",
                remedy=INSTALL,
            )  # fmt: skip
        raise fault_of(reply.get("error"))
    if type(reply) is not list or not all(type(step) is dict for step in reply):
        raise _not_understood()
    results: list[dict[str, Any]] = []
    for step in reply:
        if step.get("success") is not True:
            raise fault_of(step.get("error"))
        data = step.get("result")
        results.append(data if type(data) is dict else {})
    if len(results) != wanted:
        raise _not_understood()
    return results


def fault_of(error: object) -> LinkError:
    """The error of an error text."""
    text = escaped(error if type(error) is str else "it gave no reason")[:_MAX_ERROR]
    low = text.lower()
    if _GONE.search(text):
        return ElementNotFound(f"The page has no such element now: {text}")
    if "dialog is blocking" in low:
        return Conflict("A dialog of the page is open and holds everything else up. Answer it with browser.dialog.")
    if "timeout" in low or "timed out" in low:
        return TimedOut(f"The page did not get there in time: {text}")
    if "ffmpeg" in low:
        return ProviderUnavailable("Recording the page needs ffmpeg.", program="ffmpeg", remedy="Install ffmpeg.")
    return ExecutionFailed(f"The browser refused: {text}")


def text_in(data: dict[str, Any], name: str, limit: int = 4096) -> str:
    """A bounded text of a reply; empty where there is none."""
    value = data.get(name)
    return value[:limit] if type(value) is str else ""


def _not_understood() -> ExecutionFailed:
    return ExecutionFailed("agent-browser answered in a way that is not known here. Version 0.41 is known.")
