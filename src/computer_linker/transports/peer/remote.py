"""RemoteComputer for custom programs: pair with a computer, then use its facets, without running a service here."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from computer_linker.computer.base import Computer
from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.config.load import machine_name, remembered_id
from computer_linker.config.schema import Config
from computer_linker.errors import ProviderUnavailable
from computer_linker.services import Services
from computer_linker.transports.peer.join import join
from computer_linker.transports.peer.routes import PeerRoutes
from computer_linker.transports.peer.table import PeerTable


async def pair(address: str, code: str, *, home: Path) -> str:
    """Pair this program with a computer that shows a code; returns the name to reach it by.

    `home` stores the program's own key and its pairings. Make it private, and separate from a service's state folder.
    """
    async with _services(home) as services:
        try:
            peer, _ = await join(address, code, services.use(PeerRoutes).own(None))
        except OSError as error:
            raise ProviderUnavailable(f"{address} cannot be reached: {error.strerror or error}.") from error
        return services.use(PeerTable).add(peer).name


@asynccontextmanager
async def remote_computer(name: str, *, home: Path, scope: str = "") -> AsyncIterator[RemoteComputer]:
    """A paired computer with the facets it offers, on an open link. Permissions are enforced there.

    `scope` chooses one of its scopes where it granted several.
    """
    async with _services(home) as services:
        yield await services.use(PeerRoutes).remote_computer(name, scope)


@asynccontextmanager
async def _services(home: Path) -> AsyncIterator[Services]:
    """The services a link needs. This side has no scopes and no facets, so it grants the other nothing."""
    config = _config(home)
    services = Services(home, lambda: config)
    services.provide(Computer, Computer())
    try:
        yield services
    finally:
        await services.aclose()


def _config(home: Path) -> Config:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Config(machine_id=remembered_id(home), machine_name=machine_name(), scopes=[])
