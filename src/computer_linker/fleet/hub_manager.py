"""The manager of a hub: its embedded server if any, its connection, machines, history and invitations."""

import secrets
import time
from pathlib import Path
from typing import Any

from computer_linker.config.store import write_whole
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import InvalidRequest
from computer_linker.fleet.archive import Archive
from computer_linker.fleet.credentials import checked_url, credentials_of, new_user, tls_of
from computer_linker.fleet.embedded import EmbeddedServer, free_port
from computer_linker.fleet.history import FleetHistory
from computer_linker.fleet.hub import Hub
from computer_linker.fleet.machines import Machines
from computer_linker.fleet.membership import HUB_CREDS
from computer_linker.fleet.messages import plain_name
from computer_linker.fleet.routes import FleetRoutes
from computer_linker.fleet.seal import Signer
from computer_linker.fleet.settings import FleetFile, HubRequest, HubSettings, Invited, KnownMachine, ServerAddress
from computer_linker.registry.catalog import Catalog

_INVITATION_S = 7 * 86_400.0


class HubManager:
    """A running hub."""

    def __init__(self, home: Path, name: str, dispatcher: Dispatcher, catalog: Catalog, signer: Signer) -> None:
        self._home, self._name, self._signer = home, name, signer
        self._file = FleetFile(home)
        settings = self._file.read().hub
        assert settings is not None, "only a hub has an office"
        self.machines = Machines(settings, signer.fingerprint, lambda kept: self._file.change(hub=kept))
        self.hub = Hub(dispatcher, signer, self.machines)
        self.history = FleetHistory(self.hub, Archive(home, signer.fingerprint))
        self.routes = FleetRoutes(self.hub, catalog)
        self._server = None
        if settings.embedded_port is not None:
            self._server = EmbeddedServer(home, settings.embedded_port, lambda: dispatcher.services.config.scopes)

    async def start(self) -> None:
        """Start the hub. Raises ProviderUnavailable when its embedded server cannot be started."""
        if self._server is not None:
            await self._server.start(self.hub.seat, self._own_key(), self.machines.settings.invited)
        self.hub.start()
        self.history.start()

    async def aclose(self) -> None:
        """Stop the hub."""
        await self.history.aclose()
        await self.hub.aclose()
        if self._server is not None:
            await self._server.aclose()

    async def invite(self, name: str) -> dict[str, Any]:
        """Create an invitation file for one machine, valid once."""
        if self._server is None:
            raise InvalidRequest(
                "This hub cannot let machines into a server that is not its own. There, make credentials with the server's"
                f" own tools, and join with --hub {self._signer.fingerprint}"
            )
        called, user, seat, secret = plain_name(name), new_user(), secrets.token_hex(16), secrets.token_hex(32)
        expires_at = time.time() + _INVITATION_S
        self.machines.invite(
            Invited(seat=seat, name=called, server_key=user.public, secret=secret, expires_at=expires_at)
        )
        await self._server.admit(self.hub.seat, self._own_key(), self.machines.settings.invited)
        return {
            "computerLinkerInvitation": 1, "url": self.machines.settings.place.url, "seat": seat, "nkeySeed": user.seed,
            "hub": self._signer.fingerprint, "hubName": plain_name(self._name), "name": called, "secret": secret,
        }  # fmt: skip

    async def forget(self, name: str) -> KnownMachine:
        """Revoke the trust in a machine, and its access to the embedded server."""
        machine = self.machines.forget(name)
        if self._server is not None:
            await self._server.admit(self.hub.seat, self._own_key(), self.machines.settings.invited)
        return machine.known

    def status(self) -> dict[str, Any]:
        """Return the hub's status for the command line."""
        return {
            "url": self.machines.settings.place.url, "key": self._signer.fingerprint, "connected": self.hub.link.is_up,
            "problem": self.hub.link.problem, "embedded": self._server is not None, "machines": self.machines.listing(),
        }  # fmt: skip

    def _own_key(self) -> str:
        credentials = credentials_of(str(self._home / HUB_CREDS))
        assert credentials is not None, "a path was given"
        return credentials.user.public


def hub_settings(request: HubRequest, home: Path, before: HubSettings | None) -> HubSettings:
    """Return the settings of a request; machines and invitations stay. Everything is checked before it is stored."""
    if request.embedded and (request.url or request.creds or request.ca):
        raise InvalidRequest("A hub has its own server (--embedded) or uses another's (URL), not both.")
    if request.embedded:
        port = before.embedded_port if before is not None and before.embedded_port is not None else free_port()
        if not (home / HUB_CREDS).exists():
            write_whole(home, HUB_CREDS, new_user().seed.encode() + b"\n")
        place = ServerAddress(url=f"nats://127.0.0.1:{port}", creds=str(home / HUB_CREDS))
        return (before or HubSettings(place=place)).model_copy(update={"place": place, "embedded_port": port})
    if request.url is None:
        if before is None:
            raise InvalidRequest("Which server? computer-linker hub URL --creds FILE, or --embedded to try it here.")
        return before
    place = ServerAddress(url=checked_url(request.url), creds=request.creds, ca=request.ca)
    tls_of(place)
    credentials_of(request.creds)
    return (before or HubSettings(place=place)).model_copy(update={"place": place, "embedded_port": None})
