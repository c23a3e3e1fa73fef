"""`diagnose client`: the connector check of this computer's address, its findings, and recent connections."""

from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from computer_linker.audit.faults import AuditUnavailable
from computer_linker.auth.owner_token import is_digest
from computer_linker.config.schema import Config
from computer_linker.model.base import Model
from computer_linker.model.history import HistoryGroup
from computer_linker.service.client_setup import local_address
from computer_linker.service.connector.check import LOOPBACK, ConnectorCheck, Hop
from computer_linker.tunnels.record import TunnelState, read, shown

_LATELY = 200


class Diagnosis(Model):
    """Every hop with its finding; `hop` and `remedy` of the one that fails."""

    ok: bool
    url: str
    hop: str | None
    remedy: str | None
    tunnel: TunnelState
    warnings: list[str]
    steps: list[Hop]
    connections: list[HistoryGroup]
    refused: dict[str, int]


def diagnosis_of(config: Config, home: Path, running_url: str | None, url: str | None) -> Diagnosis:
    """Return every hop with its finding; `hop` and `remedy` of the one that fails. `url` defaults to the local address."""
    address = url or local_address(config, running_url)
    check = ConnectorCheck(address, _token_for(address, config, running_url))
    check.run()
    failed = next((step for step in check.steps if step.ok is False), None)
    tunnel = shown(read(home))
    return Diagnosis(
        ok=failed is None and check.steps[-1].ok is True,
        url=address,
        hop=failed.hop if failed else None,
        remedy=(_about_the_tunnel(address, tunnel, running_url) or failed.remedy) if failed else None,
        tunnel=tunnel,
        warnings=[step.warning for step in check.steps if step.warning is not None],
        steps=check.steps,
        connections=_history(home, "connections").get("connections", [])[:10],
        refused=_refused(home),
    )


def _about_the_tunnel(address: str, tunnel: TunnelState, running_url: str | None) -> str | None:
    """The tunnel's problem, when the checked address belongs to a tunnel that is not open."""
    is_outside = urlsplit(address).hostname not in LOOPBACK and address != running_url
    if not is_outside or tunnel.provider is None or tunnel.state in ("running", "stopped"):
        return None
    again = f", and is tried again at {tunnel.retry_at}" if tunnel.retry_at else ""
    return f"The {tunnel.provider} tunnel is {tunnel.state}{again}: {tunnel.last_error or 'no reason is known'}"


def _token_for(address: str, config: Config, running_url: str | None) -> str | None:
    """The owner token, for our own address alone: it is entered on a page there, and must not be sent to another host."""
    token = config.owner_token
    ours = {local_address(config, running_url)}
    if config.public_base_url:
        ours.add(f"{config.public_base_url.rstrip('/')}/mcp")
    parts = urlsplit(address)
    is_private = parts.scheme == "https" or parts.hostname in LOOPBACK
    return token if token is not None and not is_digest(token) and address in ours and is_private else None


def _refused(home: Path) -> dict[str, int]:
    """Recent reasons of refused credentials, with counts."""
    events = _history(home, "last", "principal:unauthenticated").get("events", [])
    return dict(Counter(str(event["reason"]).partition(" ")[0] for event in events))


def _history(home: Path, view: str, query: str | None = None) -> dict[str, Any]:
    """Names, times and reasons from the history, no contents. Read from its folder, so it works while the service hangs."""
    from computer_linker.audit.history import HistoryFolder
    from computer_linker.audit.views import Question, answer_now

    folder = home / "audit"
    if not HistoryFolder.exists(folder):
        return {}
    try:
        return answer_now(HistoryFolder(folder), Question(view, None, limit=_LATELY, query=query))
    except AuditUnavailable:
        return {}
