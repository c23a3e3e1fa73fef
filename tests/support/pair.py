"""Two computers in one process: a desk that calls and a laptop that is called, each a whole road of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from computer_linker.audit.store import AuditStore
from computer_linker.audit.views import answer
from computer_linker.model.ids import short_key
from computer_linker.transports.peer.identity import own_identity
from computer_linker.transports.peer.join import join
from computer_linker.transports.peer.pairing import grouped
from computer_linker.transports.peer.routes import PeerRoutes
from computer_linker.transports.peer.server import PeerServer
from computer_linker.transports.peer.table import Peer, PeerTable
from support.road import Road, folder_scope


class Pair:
    """Two roads and the server between them."""

    def __init__(self, desk: Road, laptop: Road, server: PeerServer) -> None:
        self.desk, self.laptop, self.server = desk, laptop, server

    @property
    def address(self) -> str:
        assert self.server.address is not None
        return f"127.0.0.1:{self.server.address[1]}"

    @property
    def caller(self) -> str:
        """The principal of the desk's calls at the laptop: its id, and the key that it proved."""
        return f"peer:desk-id-{short_key(own_identity(self.desk.home, 'desk-id').fingerprint)}"

    @property
    def routes(self) -> PeerRoutes:
        return self.desk.app.services.use(PeerRoutes)

    async def join(self, code: str) -> Peer:
        peer, _ = await join(self.address, code, self.routes.own(None))
        return self.desk.app.services.use(PeerTable).add(replace(peer, name="laptop"))

    async def paired(self, *grants: str) -> Peer:
        return await self.join(grouped(self.server.invitations.make(grants or ("app",)).code))

    async def refusals(self) -> list[tuple[str, str]]:
        """Who was refused at the laptop's door, and by which rule."""
        return [(event["principal"], event["reason"]) for event in await events_of(self.laptop, "peer.connect")]


async def events_of(road: Road, op: str) -> list[dict[str, Any]]:
    """What the owner's history tells of one operation, also of what has no scope."""
    found = await answer(
        road.app.services.use(AuditStore), view="timeline", visible=None, limit=500, query=None, cursor=None
    )
    return [event for event in found["events"] if event["op"] == op]


@asynccontextmanager
async def open_pair(
    tmp_path: Path, scopes: list[dict[str, Any]] | None = None, computer: Any = None
) -> AsyncIterator[Pair]:
    """A desk and a laptop that listens; they are not paired yet."""
    for name in ("desk", "laptop"):
        (tmp_path / name).mkdir()
    given = [folder_scope(tmp_path / "laptop" / "root")] if scopes is None else scopes
    async with Road.open(tmp_path / "desk") as desk, Road.open(tmp_path / "laptop", given, computer) as laptop:
        # Two machines of one test: the one that calls has an identity of its own.
        object.__setattr__(desk.app.config, "machine_id", "desk-id")
        server = PeerServer(laptop.app.services, laptop.app.dispatcher)
        await server.listen("127.0.0.1", 0)
        desk.app.dispatcher.routes = desk.app.services.use(PeerRoutes)
        (laptop.root / "a.txt").write_text("on the laptop")
        yield Pair(desk, laptop, server)
        await desk.app.services.use(PeerRoutes).aclose()
        await server.aclose()
