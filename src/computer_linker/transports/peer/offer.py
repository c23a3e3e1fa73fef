"""The manifest a machine sends in HELLO, the part pinned at pairing, and the detection of a change."""

import hashlib
import json
import platform
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from computer_linker.computer.base import Computer
from computer_linker.computer.remote.link import Offer, OfferedScope
from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.model.ids import short_key
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import holds, sees_scope
from computer_linker.policy.grants import grants_that_hold
from computer_linker.policy.visible_text import escaped
from computer_linker.services import Services
from computer_linker.system import NAME
from computer_linker.transports.peer.table import Peer

Pin = dict[str, Any]


def own_offer(services: Services, peer: Peer | None) -> Offer:
    """What this machine offers a peer: its current facets, and the scopes granted to that peer."""
    computer, config = services.use(Computer), services.config
    return Offer(
        name=config.machine_name,
        system=NAME,
        architecture=platform.machine().lower(),
        facets=computer.capabilities().facets,
        traits=["keyboard.takes_any_character"] if _takes_any_character(computer) else [],
        scopes=[] if peer is None else _granted_scopes(services, principal_of(peer, "offer", config.scopes)),
    )


def parse_offer(value: Any) -> Offer:
    """Parse the offer of a HELLO. Raises InvalidRequest for an invalid one."""
    try:
        return Offer.from_wire(value)
    except ValidationError as error:
        raise InvalidRequest("What that machine says of itself cannot be read.", rule="malformed_hello") from error


def pin_of(offer: Offer) -> Pin:
    """The part that must not change unnoticed. Facets appear and disappear with a desktop session, so they are not in it."""
    return {
        "name": offer.name,
        "system": offer.system,
        "architecture": offer.architecture,
        "scopes": {scope.id: [scope.type, *sorted(scope.capabilities)] for scope in offer.scopes},
    }


def drift(pinned: Pin, offer: Offer) -> str | None:
    """The first difference from a pinned manifest, for a person; None for the same or for less."""
    return next(iter(changes(pinned, pin_of(offer))), None)


def changes(pinned: Pin, now: Pin) -> list[str]:
    """All differences from a pinned manifest, other than offering less, for a person."""
    found = [
        f"its {field} was {escaped(str(pinned.get(field)))} and is {escaped(now[field])}"
        for field in ("name", "system", "architecture")
        if now[field] != pinned.get(field)
    ]
    before = pinned.get("scopes", {})
    for scope, rights in now["scopes"].items():
        if scope not in before:
            found.append(f"it offers the scope {scope}, which it did not before: {', '.join(rights[1:]) or 'nothing'}")
        elif more := sorted(set(rights) - set(before[scope])):
            found.append(f"its scope {scope} now offers {', '.join(more)}")
    return found


def word_of(pin: Pin) -> str:
    """A code for exactly this manifest: accepting by it accepts nothing that was sent later."""
    return hashlib.sha256(json.dumps(pin, sort_keys=True).encode()).hexdigest()[:16]


def refuse_drift(peer: Peer, offer: Offer) -> None:
    """Raise PermissionDenied when the machine's manifest exceeds the pinned one."""
    if peer.manifest and (changed := drift(peer.manifest, offer)):
        raise PermissionDenied(
            f"{peer.name} is not what it was when it was paired: {changed}. "
            f"If that is right: computer-linker peer accept {peer.name}",
            rule="manifest",
            computer=peer.name,
            hint=f"computer-linker peer accept {peer.name}",
        )


def principal_id(peer: Peer) -> str:
    """The id of the principal of this peer's calls. A machine chooses its own id; the certificate is what it proved."""
    return f"peer:{peer.machine_id}-{short_key(peer.fingerprint)}"


def principal_of(peer: Peer, connection: str, scopes: Iterable[Scope]) -> Principal:
    """The principal of this peer's calls, with what it may use of the scopes as they are now."""
    return Principal(
        principal_id(peer), "peer", session=connection, connection=connection, client=peer.name,
        grants=grants_that_hold(peer.grants, peer.places, scopes),
    )  # fmt: skip


def _granted_scopes(services: Services, who: Principal) -> list[OfferedScope]:
    given = []
    for scope in services.config.scopes:
        if sees_scope(who, scope.id):
            rights = sorted(str(capability.value) for capability in scope.granted if holds(who, scope, capability))
            given.append(OfferedScope(id=scope.id, type=scope.type, capabilities=rights, roots=list(scope.roots)))
    return given


def _takes_any_character(computer: Computer) -> bool:
    return computer.capabilities().has("keyboard") and getattr(computer.keyboard, "takes_any_character", False) is True
