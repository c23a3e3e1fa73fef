"""The sessions that OAuth clients hold: listed and ended, in the running service or in its files when none runs."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from computer_linker.auth.oauth.state import Family, OAuthState
from computer_linker.auth.owner_token import kept_digest
from computer_linker.config.schema import Config
from computer_linker.errors import Conflict, InvalidRequest, NotFound


def session_control(state: OAuthState, config: Config, action: str, request: dict[str, Any]) -> dict[str, Any]:
    """One `sessions.*` action, on the state that answers requests: what is ended here is ended for the next one."""
    match action:
        case "sessions.list":
            return {"ok": True, "sessions": listed(state, config)}
        case "sessions.revoke":
            return {"ok": True, "revoked": _revoke(state, request)}
        case _:
            raise InvalidRequest("There is no such sessions action.")


def control_without_service(home: Path, config: Config, action: str, request: dict[str, Any]) -> dict[str, Any]:
    """The same with no service running; its lock is held meanwhile, so that none starts on what is being changed."""
    from computer_linker.service.start import take_lock

    lock = take_lock(os.fspath(home))
    if lock is None:
        raise Conflict("A service has just started or does not answer; try again.")
    try:
        return session_control(OAuthState(home), config, action, request)
    finally:
        os.close(lock)


def listed(state: OAuthState, config: Config) -> list[dict[str, Any]]:
    """Every session, the one used last first."""
    digest = None if config.owner_token is None else kept_digest(config.owner_token)
    families = sorted(state.families.values(), key=lambda family: -family.last_used_at)
    return [_shown(family, digest) for family in families]


def _shown(family: Family, owner_digest: str | None) -> dict[str, Any]:
    now = time.time()
    ends = max([*family.refresh.values(), *family.access.values()], default=0.0)
    standing = "live" if ends > now else "expired"
    if family.owner_digest != owner_digest:
        standing = "ended by a new owner token"
    return {
        "id": family.id,
        "client": family.client_name,
        "clientId": family.client_id,
        "scopes": family.scopes,
        "grants": family.grants,
        "resource": family.resource,
        "createdAt": _time(family.created_at),
        "lastUsedAt": _time(family.last_used_at),
        "expiresAt": _time(ends) if ends else None,
        "standing": standing,
    }


def _revoke(state: OAuthState, request: dict[str, Any]) -> list[str]:
    if request.get("all") is True:
        ended = list(state.families)
    else:
        wanted = request.get("id")
        if type(wanted) is not str or not wanted:
            raise InvalidRequest("Name a session, or say that all are meant.")
        if wanted not in state.families:
            raise NotFound(f"There is no session {wanted[:80]!r}.")
        ended = [wanted]
    for family_id in ended:
        state.revoke(family_id)
    return ended


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
