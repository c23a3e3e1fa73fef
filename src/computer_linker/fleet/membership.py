"""Joining and leaving: what the owner of a machine says about which hub may use what."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from computer_linker.config.schema import Config
from computer_linker.config.store import write_whole
from computer_linker.errors import InvalidRequest
from computer_linker.fleet.feed import forget_cursors
from computer_linker.fleet.messages import plain_name
from computer_linker.fleet.place import Credentials, Invitation, checked_url, credentials_of, tls_of
from computer_linker.fleet.settings import AllowedHub, Joined, Place
from computer_linker.fleet.subjects import seat_of
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability

CREDS, CA, HUB_CREDS = "fleet.creds", "fleet-ca.pem", "fleet-hub.creds"


class JoinRequest(Model):
    """`computer-linker join`, as the command line sends it."""

    url: str | None = None
    creds: str | None = None
    ca: str | None = None
    name: str | None = None
    hub: str | None = None
    hub_name: str | None = None
    grants: list[str] = []


@dataclass(frozen=True, slots=True)
class _Said:
    """The hub that is meant, if any."""

    fingerprint: str | None
    name: str


def joined_by(request: JoinRequest, home: Path, config: Config, own: str, before: Joined | None) -> Joined:
    """The membership a request asks for. Everything is checked before a byte is stored."""
    credentials = credentials_of(request.creds)
    invitation = credentials.invitation if credentials is not None else None
    known = invitation.url if invitation is not None else before.place.url if before is not None else None
    url = request.url or known
    if url is None:
        raise InvalidRequest("Which server? computer-linker join URL")
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._:@-]{0,127}", config.machine_id) is None:
        raise InvalidRequest("This machine's id (machineId in config.json) holds characters no address can have.")
    place = Place(url=checked_url(url), ca=request.ca)
    tls_of(place)
    said = _said_hub(request, credentials)
    _check_grants(request.grants, config, said.fingerprint)
    stays = before if before is not None and before.place.url == url else None
    hubs = [hub for hub in (stays.hubs if stays is not None else []) if hub.fingerprint != said.fingerprint]
    if said.fingerprint is not None:
        hubs.append(AllowedHub(fingerprint=said.fingerprint, name=said.name, grants=request.grants))
    kept = _kept(place, request.creds, home, stays)
    seat = invitation.seat if invitation is not None else stays.seat if stays is not None else seat_of(own)
    secret = invitation.secret if invitation is not None else stays.proof_secret if stays is not None else None
    name = _name(request, invitation, stays)
    return Joined(place=kept, seat=seat, name=name, hubs=hubs, proof_secret=secret)


def forget_files(home: Path) -> None:
    """Remove what joining left behind."""
    for name in (CREDS, CA):
        (home / name).unlink(missing_ok=True)
    forget_cursors(home)


def told(joined: Joined | None) -> dict[str, Any] | None:
    """A membership as the command line shows it; no secret is in it."""
    if joined is None:
        return None
    hubs = [{"key": hub.fingerprint, "name": hub.name, "grants": hub.grants} for hub in joined.hubs]
    return {"url": joined.place.url, "name": joined.name, "hubs": hubs}


def _name(request: JoinRequest, invitation: Invitation | None, stays: Joined | None) -> str | None:
    """What it is called in the fleet: as asked for, as before, as invited; else by the machine's own name."""
    if request.name:
        return plain_name(request.name)
    if stays is not None and (invitation is None or invitation.seat == stays.seat):
        return stays.name
    return plain_name(invitation.name) if invitation is not None and invitation.name else None


def _said_hub(request: JoinRequest, credentials: Credentials | None) -> _Said:
    invitation = credentials.invitation if credentials is not None else None
    key = request.hub.replace(":", "").strip().lower() if request.hub else None
    if invitation is not None:
        if key is not None and key != invitation.hub:
            raise InvalidRequest("The invitation is of another hub than --hub says.")
        return _Said(invitation.hub, plain_name(request.hub_name or invitation.hub_name))
    try:
        return _Said(AllowedHub(fingerprint=key).fingerprint if key else None, plain_name(request.hub_name or "hub"))
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


def _kept(place: Place, creds: str | None, home: Path, before: Joined | None) -> Place:
    """The place with copies of its files in the state folder, which only this user can read."""
    kept_creds = before.place.creds if before is not None else None
    if creds is not None:
        write_whole(home, CREDS, Path(creds).read_bytes())
        kept_creds = str(home / CREDS)
    kept_ca = before.place.ca if before is not None else None
    if place.ca is not None:
        write_whole(home, CA, Path(place.ca).read_bytes())
        kept_ca = str(home / CA)
    return Place(url=place.url, creds=kept_creds, ca=kept_ca)
