"""One operation run in the service for a command, and a refusal in words that say what would help."""

from collections.abc import Mapping
from typing import Any

from computer_linker.cli.output import CliError, note
from computer_linker.cli.places import current_config, state_home


def answer_of(request: dict[str, Any]) -> dict[str, Any]:
    """The data that the operation answers, its warnings said. Raises CliError for a refusal."""
    envelope = envelope_of(request)
    if "ok" not in envelope:
        raise CliError(str(envelope.get("error", "the service refused the request")))
    if not envelope["ok"]:
        raise refused(envelope["error"], request["scope"])
    for warning in envelope["warnings"]:
        note(f"warning: {warning}")
    data: dict[str, Any] = envelope["data"]
    return data


def envelope_of(request: dict[str, Any]) -> dict[str, Any]:
    """The whole envelope, as it comes."""
    from computer_linker.client.socket_client import call_service

    home = state_home()
    # A config that cannot be used is told in its own words, before a service is started over it.
    current_config(home)
    return call_service(home, "computer_operation", request)


def refused(error: Mapping[str, Any], scope: str) -> CliError:
    """A failure's `error` as one line and a hint."""
    return CliError(f"{error['code']}: {error['message']}", _hint(error.get("details") or {}, scope))


def _hint(details: Mapping[str, Any], scope: str) -> str:
    similar = details.get("similar")
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    # Another computer's scopes are changed there.
    if "/" not in scope:
        missing = details.get("missing")
        if isinstance(missing, list) and missing:
            return _granting(scope, missing)
        if details.get("rule") == "allowedCommands":
            change = f"computer-linker scope edit {scope} --policy 'allowedCommands=[...]'"
            return f"computer-linker config show has the list; to change it: {change}"
    return str(details.get("hint") or details.get("remedy") or "")


def _granting(scope: str, missing: list[str]) -> str:
    from computer_linker.config.defaults import CODEX, EXECUTES

    # What runs programs needs a list of commands too, which set-up gives.
    if EXECUTES & set(missing):
        wish = "--codex" if set(CODEX) & set(missing) else "--shell"
        return f"to allow it, with a list of commands: computer-linker setup FOLDER {wish}"
    return f"to allow it: computer-linker scope edit {scope} --allow {' --allow '.join(missing)}"
