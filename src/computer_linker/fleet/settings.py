"""What this state folder knows of fleets: the one it joined and who may use it there, and the one it is the hub of."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from computer_linker.config.store import write_whole
from computer_linker.errors import ConfigInvalid
from computer_linker.model.base import Model

FILE = "fleet.json"
Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Word = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._:+-]*$")]
Seat = Annotated[str, Field(pattern=r"^[a-z0-9]{8,64}$")]


class Place(Model):
    """A NATS server, and how to be let in."""

    url: str
    creds: str | None = None
    """The credentials file: NATS's own form, or an invitation."""
    ca: str | None = None
    """Certificates of who may vouch for the server; None is the system's."""


class AllowedHub(Model):
    """A hub that may call this machine: its key, and what it may use here (`scope` or `scope:capability`)."""

    fingerprint: Fingerprint
    name: str = "hub"
    grants: list[str] = []


class Joined(Model):
    """The fleet this machine is part of."""

    place: Place
    seat: Seat
    name: str | None = None
    hubs: list[AllowedHub] = []
    proof_secret: str | None = None
    """What the invitation gave to prove that this machine is the invited one."""


class Invited(Model):
    """One invitation: the seat it gives, the key that opens the server, and the secret that proves it, until used."""

    seat: Seat
    name: str
    server_key: str
    secret: str
    expires_at: float
    used_by: Fingerprint | None = None


class Facts(Model):
    """What a machine says it is. Words alone: they are shown to clients and compared with queries."""

    os: Word = ""
    arch: Word = ""
    has: Annotated[list[Word], Field(max_length=200)] = []


class KnownMachine(Model):
    """A machine the owner of the hub trusts: its key and id belong together for good."""

    fingerprint: Fingerprint
    machine_id: str
    seat: Seat
    name: str
    last_seen_at: float | None = None
    left: bool = False
    facts: Facts = Facts()


class HubSettings(Model):
    """The fleet this service is the hub of."""

    place: Place
    embedded_port: int | None = None
    """Set when the hub runs the server itself, on this port of loopback."""
    invited: list[Invited] = []
    machines: list[KnownMachine] = []


class FleetSettings(Model):
    """fleet.json."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    joined: Joined | None = None
    hub: HubSettings | None = None
    hub_before: HubSettings | None = None
    """What a hub that was switched off knew of its machines."""


class FleetFile:
    """fleet.json, read whole and written whole."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @staticmethod
    def exists(home: Path) -> bool:
        """True when this state folder has anything to do with a fleet."""
        return (home / FILE).exists()

    def read(self) -> FleetSettings:
        """The settings; empty ones when there is no file. Raises ConfigInvalid for a file that cannot be used."""
        try:
            return FleetSettings.from_wire(json.loads((self._home / FILE).read_text("utf-8")))
        except FileNotFoundError:
            return FleetSettings()
        except (ValueError, ValidationError, OSError) as error:
            raise ConfigInvalid(
                f"{FILE} cannot be used: {str(error).splitlines()[0]}", "repair it, or remove it and join again"
            ) from error

    def write(self, settings: FleetSettings) -> None:
        """Store them; after any crash the file has the old or the new."""
        write_whole(self._home, FILE, json.dumps(settings.to_wire(), indent=1).encode())

    def change(self, **parts: Any) -> FleetSettings:
        """Store the settings with these parts replaced."""
        changed = self.read().model_copy(update=parts)
        self.write(changed)
        return changed
