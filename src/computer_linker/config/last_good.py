"""What stays in force in a running service while config.json does not validate: never more than before, nor than it gives.

A scope that the refused file leaves as it was goes on. One that it changes or no longer has keeps no right until the file is
valid, because either version could be the narrower one. The same holds for the token, the tunnel and the other ways in.
"""

import secrets
from typing import Any

from computer_linker.config.load import Document
from computer_linker.config.schema import BridgeSettings, Config, TunnelSettings
from computer_linker.errors import ConfigInvalid
from computer_linker.model.scope import Scope


def in_force(good: Config, accepted: Document, refused: Document | None, why: ConfigInvalid) -> Config:
    """The last good config without what the refused document changes; all of it when that is not JSON at all.

    Of JSON that cannot be read as a config (a doubled key, an unknown field of the older form) every part counts as changed.
    """
    reasons = tuple(str(problem) for problem in why.problems)
    if refused is None and not any(problem.field for problem in why.problems):
        return good.in_place_of(reasons)
    now: dict[str, Any] = {} if refused is None else refused.value
    changes: dict[str, Any] = {"scopes": _suspended(good, accepted.value, now)}
    for name, field, narrowest in (
        ("ownerToken", "owner_token", secrets.token_hex(32)),
        ("publicBaseUrl", "public_base_url", None),
        ("tunnel", "tunnel", TunnelSettings()),
        ("bridge", "bridge", BridgeSettings()),
        ("approvalPage", "approval_page", False),
    ):
        if accepted.value.get(name) != now.get(name):
            changes[field] = narrowest
    return good.model_copy(update=changes).in_place_of(reasons)


def _suspended(good: Config, accepted: dict[str, Any], refused: dict[str, Any]) -> list[Scope]:
    before, after = _by_id(accepted), _by_id(refused)
    return [
        scope
        if before.get(scope.id) == after.get(scope.id)
        # Not left out: its rules about what lies inside another scope's folder go on.
        # Not a copy: that would keep the decisions cached in it.
        else Scope.from_wire({**scope.to_wire(), "capabilities": []}).refusing(scope.refused)
        for scope in good.scopes
    ]


def _by_id(document: dict[str, Any]) -> dict[str, Any]:
    scopes = document.get("scopes")
    if not isinstance(scopes, list):
        return {}
    return {str(scope.get("id")): scope for scope in scopes if isinstance(scope, dict)}
