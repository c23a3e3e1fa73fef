"""`diagnose client`: the play on this computer's own address, what it means, and who connected lately."""

from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from computer_linker.audit.faults import AuditUnavailable
from computer_linker.auth.owner_token import is_digest
from computer_linker.config.schema import Config
from computer_linker.service.client_setup import local_address
from computer_linker.service.connector.play import LOOPBACK, Play

_LATELY = 200


def diagnose_client(config: Config, home: Path, running_url: str | None, url: str | None) -> dict[str, Any]:
    """Every hop with what was seen; `hop` and `remedy` of the one that fails. `url` is the local address when left out."""
    address = url or local_address(config, running_url)
    play = Play(address, _token_for(address, config, running_url))
    play.run()
    failed = next((step for step in play.steps if step["ok"] is False), None)
    tunnel = _tunnel(home)
    return {
        "ok": failed is None and play.steps[-1]["ok"] is True,
        "url": address,
        "hop": failed["hop"] if failed else None,
        "remedy": (_about_the_tunnel(address, tunnel, running_url) or failed["remedy"]) if failed else None,
        "tunnel": tunnel,
        "warnings": [step["warning"] for step in play.steps if "warning" in step],
        "steps": play.steps,
        "connections": _history(home, "connections").get("connections", [])[:10],
        "refused": _refused(home),
    }


def _tunnel(home: Path) -> dict[str, Any]:
    from computer_linker.tunnels.record import read, shown

    return shown(read(home))


def _about_the_tunnel(address: str, tunnel: dict[str, Any], running_url: str | None) -> str | None:
    """What is wrong with the tunnel, when the way that was tried leads through one that is not open."""
    is_outside = urlsplit(address).hostname not in LOOPBACK and address != running_url
    if not is_outside or tunnel["provider"] is None or tunnel["state"] in ("running", "stopped"):
        return None
    again = f", and is tried again at {tunnel['retryAt']}" if tunnel["retryAt"] else ""
    return f"The {tunnel['provider']} tunnel is {tunnel['state']}{again}: {tunnel['lastError'] or 'no reason is known'}"


def _token_for(address: str, config: Config, running_url: str | None) -> str | None:
    """The owner token, for our own address alone: it is typed into a page there, and must not go to a stranger's."""
    token = config.owner_token
    ours = {local_address(config, running_url)}
    if config.public_base_url:
        ours.add(f"{config.public_base_url.rstrip('/')}/mcp")
    parts = urlsplit(address)
    is_private = parts.scheme == "https" or parts.hostname in LOOPBACK
    return token if token is not None and not is_digest(token) and address in ours and is_private else None


def _refused(home: Path) -> dict[str, int]:
    """What was wrong with the credentials that were refused lately, and how often."""
    events = _history(home, "last", "principal:unauthenticated").get("events", [])
    return dict(Counter(str(event["reason"]).partition(" ")[0] for event in events))


def _history(home: Path, view: str, query: str | None = None) -> dict[str, Any]:
    """What the history has: names, times and reasons, nothing that was sent. Read from its folder, so a service may hang."""
    from computer_linker.audit.history import HistoryFolder
    from computer_linker.audit.views import Question, answer_now

    folder = home / "audit"
    if not HistoryFolder.exists(folder):
        return {}
    try:
        return answer_now(HistoryFolder(folder), Question(view, None, limit=_LATELY, query=query))
    except AuditUnavailable:
        return {}
