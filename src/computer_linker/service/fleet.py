"""The service's part in fleets: as a machine that joined one, and as the hub of one.

The extra that fleets need is imported on first use, so that a service outside every fleet starts without it.
"""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Self

import anyio
from pydantic import Field

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import Conflict, LinkError, ProviderUnavailable, UnknownScope
from computer_linker.extras import remedy
from computer_linker.fleet.settings import FleetFile, FleetSettings, HubRequest, Joined, JoinRequest, KnownMachine
from computer_linker.model.base import Model
from computer_linker.model.envelope import Call, Reply
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.context import Progress
from computer_linker.service.peers import OfferedScope
from computer_linker.services import Services

if TYPE_CHECKING:
    from computer_linker.fleet.hub_manager import HubManager
    from computer_linker.fleet.machines import Machine
    from computer_linker.fleet.member import Member
    from computer_linker.fleet.seal import Signer

log = logging.getLogger(__name__)

_NEEDED = ("nats", "msgpack", "cryptography")
_CONNECT_S = 8.0


class HubRights(Model):
    """A hub that may call this machine, and what it may use here."""

    key: str
    name: str
    grants: list[str]


class Membership(Model):
    """The fleet this machine joined; without its secrets."""

    url: str
    name: str | None
    hubs: list[HubRights]

    @classmethod
    def of(cls, joined: Joined) -> Self:
        hubs = [HubRights(key=hub.fingerprint, name=hub.name, grants=hub.grants) for hub in joined.hubs]
        return cls(url=joined.place.url, name=joined.name, hubs=hubs)


class FleetStatus(Model):
    """This machine in its fleet."""

    joined: Annotated[Membership | None, Field(description="Null when this machine is part of no fleet.")]
    key: Annotated[str, Field(description="This machine's own key.")]
    connected: bool
    problem: str | None
    history_problem: str | None


class FleetMachine(Model):
    """A machine as its hub sees it."""

    name: str
    machine_id: str
    via: str
    state: str
    last_seen_at: str | None
    key: str
    os: str
    arch: str
    has: list[str]
    scopes: list[OfferedScope] = []


class HubState(Model):
    """This computer as a hub."""

    url: str
    key: str
    connected: bool
    problem: str | None
    embedded: bool
    machines: list[FleetMachine]


class FleetManager:
    """Joins and leaves a fleet, runs the hub of one, and sends calls to its machines."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._file = FleetFile(services.home)
        self._member: Member | None = None
        self._hub_manager: HubManager | None = None
        self._is_started = False

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def start(self) -> None:
        """Connect as configured in fleet.json. A fleet that cannot be used is logged, and the service serves without it."""
        self._is_started = True
        if not FleetFile.exists(self._services.home):
            return
        try:
            _check_installed()
            settings = self._file.read()
            if settings.hub is not None:
                await self._open_hub()
            if settings.joined is not None:
                self._connect(settings.joined)
        except LinkError as error:
            log.error("the fleet cannot be used: %s", error.message)

    async def aclose(self) -> None:
        """Disconnect, for this run of the service."""
        member, self._member = self._member, None
        if member is not None:
            await member.aclose()
        await self._close_hub()

    def is_busy(self) -> bool:
        """True while this machine is reached, or reaches others, through a fleet: an on-demand service then stays."""
        return self._member is not None or self._hub_manager is not None

    @property
    def is_hub(self) -> bool:
        return self._hub_manager is not None

    @property
    def settings(self) -> FleetSettings:
        """What fleet.json has now."""
        return self._file.read()

    def computers(self) -> list[dict[str, Any]]:
        """The machines of the fleet this is the hub of, as clients see them."""
        return self._hub_manager.routes.computers() if self._hub_manager is not None else []

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run a call on machines of the fleet."""
        return await self._for_clients().routes.call(computer, call, report)

    async def history(
        self, address: str, view: str, limit: int, terms: str | None, cursor: str | None
    ) -> dict[str, Any]:
        """The history of machines of the fleet."""
        history = self._for_clients().history
        return await history.answer(address, view=view, limit=limit, terms=terms, cursor=cursor)

    def exposure(self) -> dict[str, Any] | None:
        """Who can reach this machine through a fleet; None when it is part of none."""
        return self.status().to_wire() if self._member is not None else None

    def status(self) -> FleetStatus:
        """This machine's membership, and whether it is connected."""
        _check_installed()
        joined, link = self.settings.joined, self._member.link if self._member is not None else None
        return FleetStatus(
            joined=Membership.of(joined) if joined is not None else None,
            key=self._signer().fingerprint,
            connected=link is not None and link.is_up,
            problem=link.problem if link is not None else None,
            history_problem=self._member.history_problem if self._member is not None else None,
        )

    async def join(self, request: JoinRequest) -> FleetStatus:
        """Join a fleet, or change what its hubs may use. Everything is checked before anything is stored."""
        _check_installed()
        from computer_linker.fleet.membership import joined_by

        services = self._services
        joined = joined_by(request, services.home, services.config, self._signer().fingerprint, self.settings.joined)
        if self._member is not None:
            await self._member.aclose()
            await self._member.part_from([hub.fingerprint for hub in joined.hubs])
        self._file.change(joined=joined)
        await self._connect(joined).link.wait_up(_CONNECT_S)
        return self.status()

    async def leave(self) -> str | None:
        """Leave the fleet and forget its credentials; the address of its server, None when there was none."""
        _check_installed()
        from computer_linker.fleet.membership import forget_files

        joined = self.settings.joined
        member, self._member = self._member, None
        if member is not None:
            await member.aclose(leaving=True)
            await member.part_from()
        self._file.change(joined=None)
        forget_files(self._services.home)
        return joined.place.url if joined is not None else None

    def hub_state(self) -> HubState:
        """The hub and its machines. Raises Conflict when this is no hub."""
        return HubState.from_wire(self._hub().status())

    async def start_hub(self, request: HubRequest) -> HubState:
        """Become a hub now; with no service running, at its next start. A failure changes nothing."""
        _check_installed()
        from computer_linker.fleet.hub_manager import hub_settings

        before = self.settings
        settings = hub_settings(request, self._services.home, before.hub or before.hub_before)
        if self._hub_manager is not None and settings == before.hub:
            return self.hub_state()
        await self._close_hub()
        self._file.change(hub=settings, hub_before=None)
        if not self._is_started:
            return HubState(
                url=settings.place.url, key=self._signer().fingerprint, connected=False, problem=None,
                embedded=settings.embedded_port is not None, machines=[],
            )  # fmt: skip
        try:
            await (await self._open_hub()).hub.link.wait_up(_CONNECT_S)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._close_hub()
                self._file.change(hub=before.hub, hub_before=before.hub_before)
                if before.hub is not None:
                    await self._open_hub()
            raise
        return self.hub_state()

    async def stop_hub(self) -> None:
        """Stop being a hub. Its machines stay stored for a later start."""
        self._hub()
        await self._close_hub()
        self._file.change(hub=None, hub_before=self.settings.hub)

    async def invite(self, name: str) -> dict[str, Any]:
        """The content of an invitation file for one machine, good once."""
        return await self._hub().invite(name)

    def trust(self, key: str) -> "Machine":
        """Trust the machine that asked to join with this key."""
        return self._hub().machines.trust(key)

    async def forget(self, name: str) -> KnownMachine:
        """Stop trusting a machine."""
        return await self._hub().forget(name)

    def is_trusted(self, key: str) -> bool:
        """Whether fleet.json lists the machine of this key as trusted."""
        hub = self.settings.hub
        return hub is not None and any(known.fingerprint == key for known in hub.machines)

    def is_invited(self, seat: str) -> bool:
        """Whether fleet.json has the invitation with this NATS subject id."""
        hub = self.settings.hub
        return hub is not None and any(invited.seat == seat for invited in hub.invited)

    def _connect(self, joined: Joined) -> "Member":
        from computer_linker.fleet.member import Member

        services = self._services
        self._member = Member(services, services.use(Dispatcher), self._signer(), joined)
        self._member.start()
        return self._member

    async def _open_hub(self) -> "HubManager":
        from computer_linker.fleet.hub_manager import HubManager

        services = self._services
        manager = HubManager(
            services.home, services.config.machine_name, services.use(Dispatcher), services.use(Catalog), self._signer()
        )
        await manager.start()
        self._hub_manager = manager
        return manager

    async def _close_hub(self) -> None:
        manager, self._hub_manager = self._hub_manager, None
        if manager is not None:
            await manager.aclose()

    def _hub(self) -> "HubManager":
        _check_installed()
        if self._hub_manager is None:
            raise Conflict("This computer is not the hub of a fleet. First: computer-linker hub")
        return self._hub_manager

    def _for_clients(self) -> "HubManager":
        if self._hub_manager is None:
            raise UnknownScope("There is no such scope: this computer is not the hub of a fleet.")
        return self._hub_manager

    def _signer(self) -> "Signer":
        from computer_linker.fleet.seal import Signer
        from computer_linker.transports.peer.identity import own_identity

        return Signer(own_identity(self._services.home, self._services.config.machine_id))


def _check_installed() -> None:
    if any(find_spec(name) is None for name in _NEEDED):
        raise ProviderUnavailable(f"What a fleet needs is not installed. {remedy('fleet')}")
