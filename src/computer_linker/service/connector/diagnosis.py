"""`diagnose client`: the play on this computer's own address, what it means, and who connected lately."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from computer_linker.auth.owner_token import is_digest
from computer_linker.config.schema import Config
from computer_linker.service.client_setup import local_address
from computer_linker.service.connector.play import LOOPBACK, Play

_HISTORY_S = 10.0


def diagnose_client(config: Config, home: Path, running_url: str | None, url: str | None) -> dict[str, Any]:
    """Every hop with what was seen; `hop` and `remedy` of the one that fails. `url` is the local address when left out."""
    address = url or local_address(config, running_url)
    play = Play(address, _token_for(address, config, running_url))
    play.run()
    failed = next((step for step in play.steps if step["ok"] is False), None)
    return {
        "ok": failed is None and play.steps[-1]["ok"] is True,
        "url": address,
        "hop": failed["hop"] if failed else None,
        "remedy": failed["remedy"] if failed else None,
        "warnings": [step["warning"] for step in play.steps if "warning" in step],
        "steps": play.steps,
        "connections": _connections(home),
    }


def _token_for(address: str, config: Config, running_url: str | None) -> str | None:
    """The owner token, for our own address alone: it is typed into a page there, and must not go to a stranger's."""
    token = config.owner_token
    ours = {local_address(config, running_url)}
    if config.public_base_url:
        ours.add(f"{config.public_base_url.rstrip('/')}/mcp")
    parts = urlsplit(address)
    is_private = parts.scheme == "https" or parts.hostname in LOOPBACK
    return token if token is not None and not is_digest(token) and address in ours and is_private else None


def _connections(home: Path) -> list[dict[str, Any]]:
    """Who connected lately, as the history has it: names and times, nothing that was sent."""
    from computer_linker.client.socket_client import ask_service

    arguments = {"view": "connections", "limit": 50}
    try:
        answer = ask_service(home, {"tool": "get_operation_history", "arguments": arguments}, within_s=_HISTORY_S) or {}
    except TimeoutError:
        return []
    groups = answer.get("connections") or answer.get("groups") or []
    return list(groups)[:10]
