"""fleet.json: the fleet this machine joined, the hubs it allows, and the fleet it is the hub of."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from computer_linker.config.store import write_whole
from computer_linker.errors import ConfigInvalid
from computer_linker.model.base import Model
from computer_linker.registry.owner import LocalPath, Named, Positional

FILE = "fleet.json"
Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
PlainText = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._:+-]*$")]
Seat = Annotated[str, Field(pattern=r"^[a-z0-9]{8,64}$")]


class ServerAddress(Model):
    """The address of a NATS server, and the files to connect with."""

    url: str
    creds: str | None = None
    """The credentials file: NATS's own form, or an invitation."""
    ca: str | None = None
    """CA certificates for the server; None means the system's."""


_Creds = Annotated[
    str | None,
    Field(description="The credentials file; only you may read it."),
    LocalPath(),
    Named(metavar="FILE"),
]
_Ca = Annotated[
    str | None,
    Field(description="Who vouches for the server, if not the system."),
    LocalPath(),
    Named(metavar="FILE"),
]


class JoinRequest(Model):
    """The fleet a machine's owner wants to join, and what the hub may use there."""

    url: Annotated[str | None, Field(description="tls://HOST:PORT; an invitation names it itself."), Positional()] = (
        None
    )
    creds: _Creds = None
    ca: _Ca = None
    name: Annotated[str | None, Field(description="What to be called in the fleet.")] = None
    hub: Annotated[
        str | None, Field(description="The hub that may call; an invitation names it."), Named(metavar="KEY")
    ] = None
    hub_name: Annotated[str | None, Field(description="What to call that hub in this machine's history.")] = None
    grants: Annotated[
        list[str],
        Field(description="What the hub may use here: SCOPE or SCOPE:CAPABILITY."),
        Named("--allow", metavar="RIGHT"),
    ] = []


class HubRequest(Model):
    """The server a hub uses: an embedded or an external one."""

    url: Annotated[
        str | None, Field(description="tls://HOST:PORT of the NATS server."), Named("--server", metavar="URL")
    ] = None
    creds: _Creds = None
    ca: _Ca = None
    embedded: Annotated[bool, Field(description="A server of its own on this machine, to try it.")] = False


class AllowedHub(Model):
    """A hub that may call this machine: its key, and what it may use here (`scope` or `scope:capability`)."""

    fingerprint: Fingerprint
    name: str = "hub"
    grants: list[str] = []
    places: Annotated[
        dict[str, list[str]],
        Field(description="Where these scopes were when the owner gave them; of older ones nothing."),
    ] = {}


class Joined(Model):
    """The fleet this machine is part of."""

    place: ServerAddress
    seat: Seat
    name: str | None = None
    hubs: list[AllowedHub] = []
    proof_secret: str | None = None
    """The secret of the invitation, which proves that this machine is the invited one."""


class Invited(Model):
    """One invitation: its seat (see subjects.py), the server key it grants, and the one-time secret that proves it."""

    seat: Seat
    name: str
    server_key: str
    secret: str
    expires_at: float
    used_by: Fingerprint | None = None


class Facts(Model):
    """Self-reported facts of a machine. Plain text only: they are shown to clients and compared with queries."""

    os: PlainText = ""
    arch: PlainText = ""
    has: Annotated[list[PlainText], Field(max_length=200)] = []


class KnownMachine(Model):
    """A machine that the hub's owner trusts. Its key and id stay bound to each other."""

    fingerprint: Fingerprint
    machine_id: str
    seat: Seat
    name: str
    last_seen_at: float | None = None
    left: bool = False
    facts: Facts = Facts()


class HubSettings(Model):
    """The fleet this service is the hub of."""

    place: ServerAddress
    embedded_port: int | None = None
    """The loopback port, set when the hub runs the server itself."""
    invited: list[Invited] = []
    machines: list[KnownMachine] = []


class FleetSettings(Model):
    """fleet.json."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    joined: Joined | None = None
    hub: HubSettings | None = None
    hub_before: HubSettings | None = None
    """The machines of a hub that was switched off."""


class FleetFile:
    """Reads and writes fleet.json as a whole."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @staticmethod
    def exists(home: Path) -> bool:
        """True when this state folder has fleet settings."""
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
        """Store the settings atomically: after a crash the file has the old or the new ones."""
        write_whole(self._home, FILE, json.dumps(settings.to_wire(), indent=1).encode())

    def change(self, **parts: Any) -> FleetSettings:
        """Store the settings with these parts replaced."""
        changed = self.read().model_copy(update=parts)
        self.write(changed)
        return changed
