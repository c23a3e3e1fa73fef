"""The service's part in fleets: joining one, leaving it, being the hub of one. Nothing of it is imported before it is used."""

import logging
import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from computer_linker.errors import ConfigInvalid, InvalidRequest, LinkError, ProviderUnavailable, UnknownScope
from computer_linker.extras import remedy
from computer_linker.model.envelope import Call, Reply
from computer_linker.registry.context import Progress
from computer_linker.registry.validation import explain_validation
from computer_linker.service.app import App

if TYPE_CHECKING:
    from computer_linker.fleet.member import Member
    from computer_linker.fleet.office import HubOffice
    from computer_linker.fleet.seal import Signer

log = logging.getLogger(__name__)

_FILE = "fleet.json"
_NEEDED = ("nats", "msgpack", "cryptography")
_CONNECT_S = 8.0


class FleetDesk:
    """Answers the `fleet.*` and `hub.*` control actions, and leads to the machines of a fleet."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._member: Member | None = None
        self._office: HubOffice | None = None
        app.services.provide(FleetDesk, self)

    async def start(self) -> None:
        """Take up what the owner last said. A fleet that cannot be had does not keep the service from serving."""
        if not (self._app.home / _FILE).exists():
            return
        try:
            _check_installed()
            from computer_linker.fleet.settings import FleetFile

            settings = FleetFile(self._app.home).read()
            if settings.hub is not None:
                await self._open_office()
            if settings.joined is not None:
                self._join_now()
        except LinkError as error:
            log.error("the fleet cannot be used: %s", error.message)

    async def aclose(self) -> None:
        """Go, for now."""
        member, self._member = self._member, None
        if member is not None:
            await member.aclose()
        office, self._office = self._office, None
        if office is not None:
            await office.aclose()

    def is_busy(self) -> bool:
        """An on-demand service stays for as long as others reach this machine, or reach others through it."""
        return self._member is not None or self._office is not None

    @property
    def is_hub(self) -> bool:
        return self._office is not None

    def computers(self) -> list[dict[str, Any]]:
        """The machines of the fleet this is the hub of."""
        return self._office.routes.computers() if self._office is not None else []

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply:
        """Run a call on machines of the fleet."""
        if self._office is None:
            raise UnknownScope("There is no such scope: this computer is not the hub of a fleet.")
        return await self._office.routes.call(computer, call, report)

    async def history(
        self, address: str, view: str, limit: int, terms: str | None, cursor: str | None
    ) -> dict[str, Any]:
        """The history of machines of the fleet."""
        if self._office is None:
            raise UnknownScope("There is no such scope: this computer is not the hub of a fleet.")
        return await self._office.history.answer(address, view=view, limit=limit, terms=terms, cursor=cursor)

    def exposure(self) -> dict[str, Any] | None:
        """Who can reach this machine through a fleet; None when it is part of none."""
        return self._status() if self._member is not None else None

    async def control(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        """One of the fleet.* and hub.* actions of the command line."""
        _check_installed()
        given = {name: value for name, value in request.items() if name != "action"}
        match action:
            case "fleet.join":
                return await self._join(given)
            case "fleet.leave":
                return await self._leave()
            case "fleet.status":
                return {"ok": True, **self._status()}
            case "hub.start":
                return await self._start_hub(given)
            case "hub.stop":
                return await self._stop_hub()
            case "hub.status":
                return {"ok": True, **self._hub().told()}
            case "hub.invite":
                return {"ok": True, "invitation": await self._hub().invite(str(given.get("name")))}
            case "hub.trust":
                return {"ok": True, "trusted": self._hub().machines.trust(str(given.get("key"))).known.name}
            case "hub.forget":
                return {"ok": True, "forgotten": await self._hub().forget(str(given.get("name")))}
            case _:
                raise InvalidRequest("There is no such fleet action.")

    async def _join(self, given: dict[str, Any]) -> dict[str, Any]:
        from computer_linker.fleet.membership import JoinRequest, joined_by
        from computer_linker.fleet.settings import FleetFile

        with explain_validation("arguments"):
            request = JoinRequest.from_wire(given)
        file = FleetFile(self._app.home)
        own = self._signer().fingerprint
        joined = joined_by(request, self._app.home, self._app.config, own, file.read().joined)
        if self._member is not None:
            await self._member.aclose()
            await self._member.part_from([hub.fingerprint for hub in joined.hubs])
        file.change(joined=joined)
        member = self._join_now()
        connected = await member.link.wait_up(_CONNECT_S)
        return {"ok": True, "connected": connected, "problem": member.link.problem, **self._status()}

    async def _leave(self) -> dict[str, Any]:
        from computer_linker.fleet.membership import forget_files
        from computer_linker.fleet.settings import FleetFile

        file = FleetFile(self._app.home)
        joined = file.read().joined
        member, self._member = self._member, None
        if member is not None:
            await member.aclose(leaving=True)
            await member.part_from()
        file.change(joined=None)
        forget_files(self._app.home)
        return {"ok": True, "left": joined.place.url if joined is not None else None}

    def _join_now(self) -> "Member":
        from computer_linker.fleet.member import Member
        from computer_linker.fleet.settings import FleetFile

        joined = FleetFile(self._app.home).read().joined
        if joined is None:
            raise ConfigInvalid("fleet.json says nothing of a fleet to join", "computer-linker join URL")
        self._member = Member(self._app.services, self._app.dispatcher, self._signer(), joined)
        self._member.start()
        return self._member

    async def _start_hub(self, given: dict[str, Any]) -> dict[str, Any]:
        from computer_linker.fleet.office import HubRequest, hub_settings
        from computer_linker.fleet.settings import FleetFile

        with explain_validation("arguments"):
            request = HubRequest.from_wire(given)
        file = FleetFile(self._app.home)
        stored = file.read()
        settings = hub_settings(request, self._app.home, stored.hub or stored.hub_before)
        if self._office is not None and settings == stored.hub:
            return {"ok": True, **self._office.told()}
        if self._office is not None:
            await self._office.aclose()
            self._office = None
        file.change(hub=settings, hub_before=None)
        office = await self._open_office()
        await office.hub.link.wait_up(_CONNECT_S)
        return {"ok": True, **office.told()}

    async def _stop_hub(self) -> dict[str, Any]:
        """Be a hub no more. Its machines are remembered, should it be one again."""
        from computer_linker.fleet.settings import FleetFile

        office, self._office = self._hub(), None
        await office.aclose()
        file = FleetFile(self._app.home)
        file.change(hub=None, hub_before=file.read().hub)
        return {"ok": True}

    async def _open_office(self) -> "HubOffice":
        from computer_linker.fleet.office import HubOffice

        app = self._app
        office = HubOffice(app.home, app.config.machine_name, app.dispatcher, app.catalog, self._signer())
        await office.start()
        self._office = office
        return office

    def _hub(self) -> "HubOffice":
        if self._office is None:
            raise InvalidRequest("This computer is not the hub of a fleet. First: computer-linker hub")
        return self._office

    def _status(self) -> dict[str, Any]:
        from computer_linker.fleet.membership import told
        from computer_linker.fleet.settings import FleetFile

        member = self._member
        return {
            "joined": told(FleetFile(self._app.home).read().joined), "key": self._signer().fingerprint,
            "connected": member is not None and member.link.is_up,
            "problem": member.link.problem if member is not None else None,
            "historyProblem": member.history_problem if member is not None else None,
        }  # fmt: skip

    def _signer(self) -> "Signer":
        from computer_linker.fleet.seal import Signer
        from computer_linker.transports.peer.identity import own_identity

        return Signer(own_identity(self._app.home, self._app.config.machine_id))


def store_hub(home: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Store that this state folder is a hub, for the service that is about to start."""
    _check_installed()
    from computer_linker.config.live import LiveConfig
    from computer_linker.config.store import ensure
    from computer_linker.fleet.office import HubRequest, hub_settings
    from computer_linker.fleet.settings import FleetFile
    from computer_linker.transports.peer.identity import own_identity

    ensure(home, secrets.token_urlsafe(32))
    key = own_identity(home, LiveConfig(home).current().machine_id).fingerprint
    file = FleetFile(home)
    stored = file.read()
    with explain_validation("arguments"):
        request = HubRequest.from_wire(wanted)
    settings = hub_settings(request, home, stored.hub or stored.hub_before)
    file.change(hub=settings)
    return {"ok": True, "url": settings.place.url, "key": key, "embedded": settings.embedded_port is not None}


def _check_installed() -> None:
    if any(find_spec(name) is None for name in _NEEDED):
        raise ProviderUnavailable(f"What a fleet needs is not installed. {remedy('fleet')}")
