"""Joining and leaving a fleet, and the owner's grants to hubs."""

import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from computer_linker.config.schema import Config
from computer_linker.config.store import write_whole
from computer_linker.errors import InvalidRequest
from computer_linker.fleet.credentials import Credentials, Invitation, checked_url, credentials_of, tls_of
from computer_linker.fleet.feed import forget_cursors
from computer_linker.fleet.messages import plain_name, seat_of
from computer_linker.fleet.settings import AllowedHub, Joined, JoinRequest, ServerAddress
from computer_linker.model.capability import Capability
from computer_linker.policy.grants import granted_places

CREDS, CA, HUB_CREDS = "fleet.creds", "fleet-ca.pem", "fleet-hub.creds"


@dataclass(frozen=True, slots=True)
class _NamedHub:
    """The hub named by a request, if any."""

    fingerprint: str | None
    name: str


def joined_by(request: JoinRequest, home: Path, config: Config, own: str, before: Joined | None) -> Joined:
    """The membership that results from a request. Everything is checked before anything is stored."""
    credentials = credentials_of(request.creds)
    invitation = credentials.invitation if credentials is not None else None
    known = invitation.url if invitation is not None else before.place.url if before is not None else None
    url = request.url or known
    if url is None:
        raise InvalidRequest("Which server? computer-linker join URL")
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._:@-]{0,127}", config.machine_id) is None:
        raise InvalidRequest("This machine's id (machineId in config.json) holds characters no address can have.")
    place = ServerAddress(url=checked_url(url), ca=request.ca)
    tls_of(place)
    named = _named_hub(request, credentials)
    _check_grants(request.grants, config, named.fingerprint)
    stays = before if before is not None and before.place.url == url else None
    hubs = [hub for hub in (stays.hubs if stays is not None else []) if hub.fingerprint != named.fingerprint]
    if named.fingerprint is not None:
        places = granted_places(request.grants, config.scopes)
        hubs.append(AllowedHub(fingerprint=named.fingerprint, name=named.name, grants=request.grants, places=places))
    kept = _kept(place, request.creds, home, stays)
    seat = invitation.seat if invitation is not None else stays.seat if stays is not None else seat_of(own)
    secret = invitation.secret if invitation is not None else stays.proof_secret if stays is not None else None
    name = _name(request, invitation, stays)
    return Joined(place=kept, seat=seat, name=name, hubs=hubs, proof_secret=secret)


def forget_files(home: Path) -> None:
    """Remove the files of a membership."""
    for name in (CREDS, CA):
        (home / name).unlink(missing_ok=True)
    forget_cursors(home)


def _name(request: JoinRequest, invitation: Invitation | None, stays: Joined | None) -> str | None:
    """The machine's name in the fleet: as requested, as before, as invited; else its own name."""
    if request.name:
        return plain_name(request.name)
    if stays is not None and (invitation is None or invitation.seat == stays.seat):
        return stays.name
    return plain_name(invitation.name) if invitation is not None and invitation.name else None


def _named_hub(request: JoinRequest, credentials: Credentials | None) -> _NamedHub:
    invitation = credentials.invitation if credentials is not None else None
    key = request.hub.replace(":", "").strip().lower() if request.hub else None
    if invitation is not None:
        if key is not None and key != invitation.hub:
            raise InvalidRequest("The invitation is of another hub than --hub says.")
        return _NamedHub(invitation.hub, plain_name(request.hub_name or invitation.hub_name))
    try:
        return _NamedHub(
            AllowedHub(fingerprint=key).fingerprint if key else None, plain_name(request.hub_name or "hub")
        )
    except ValidationError:
        raise InvalidRequest("A hub's key has 64 hexadecimal digits; computer-linker hub shows it.") from None


def _check_grants(grants: list[str], config: Config, hub: str | None) -> None:
    if grants and hub is None:
        raise InvalidRequest("Which hub may use this? --hub KEY, as computer-linker hub shows it.")
    for grant in grants:
        scope, _, capability = grant.partition(":")
        if config.scope(scope) is None:
            raise InvalidRequest(f"There is no scope {scope[:60]!r} to give.")
        if capability and capability not in set(Capability):
            raise InvalidRequest(f"There is no capability {capability[:60]!r}.", capabilities=sorted(Capability))


def _kept(place: ServerAddress, creds: str | None, home: Path, before: Joined | None) -> ServerAddress:
    """The server address with copies of its files in the state folder, which only this user can read."""
    kept_creds = before.place.creds if before is not None else None
    if creds is not None:
        write_whole(home, CREDS, Path(creds).read_bytes())
        kept_creds = str(home / CREDS)
    kept_ca = before.place.ca if before is not None else None
    if place.ca is not None:
        write_whole(home, CA, Path(place.ca).read_bytes())
        kept_ca = str(home / CA)
    return ServerAddress(url=place.url, creds=kept_creds, ca=kept_ca)
