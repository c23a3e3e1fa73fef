"""A hub and its machines in one process, each a whole road of its own, joined by a real nats-server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.audit.history import every_event
from computer_linker.audit.query import Filter
from computer_linker.audit.store import AuditStore
from computer_linker.config.schema import Config
from computer_linker.fleet.archive import Archive
from computer_linker.fleet.feed import Feed
from computer_linker.fleet.history import FleetHistory
from computer_linker.fleet.hub import Hub
from computer_linker.fleet.link import FleetLink, Wants
from computer_linker.fleet.machines import Machines
from computer_linker.fleet.member import Member, Times
from computer_linker.fleet.messages import seat_of
from computer_linker.fleet.routes import FleetRoutes
from computer_linker.fleet.seal import Signer
from computer_linker.fleet.settings import AllowedHub, FleetFile, HubSettings, Joined, ServerAddress
from computer_linker.model.scope import Scope
from computer_linker.service.app import open_app
from computer_linker.transports.peer.identity import own_identity
from support.nats import NatsServer
from support.road import Road, computer_scope, folder_scope
from support.waiting import DEADLINE_S, until_awaited
from support.waiting import until as until

BEAT = Times(heartbeat=0.25, history=0.1, asked_again=0.01)


@asynccontextmanager
async def road(
    folder: Path, machine_id: str, name: str, computer: Any = None, policy: dict[str, Any] | None = None
) -> AsyncIterator[Road]:
    """A service without transports, with an identity of its own."""
    root, home = folder / "root", folder / "home"
    root.mkdir(parents=True, exist_ok=True)
    home.mkdir(mode=0o700, exist_ok=True)
    scopes = [folder_scope(root, **(policy or {})), computer_scope()]
    for scope in scopes:
        # The history a hub gathers is everybody's.
        scope["capabilities"] = [*scope["capabilities"], "history:all"]
    config = Config(machine_id=machine_id, machine_name=name, scopes=[Scope.from_wire(scope) for scope in scopes])
    async with open_app(home, lambda: config, computer) as app:
        yield Road(app, root, home)


def signer_of(of: Road) -> Signer:
    return Signer(own_identity(of.home, of.app.config.machine_id))


async def refusals(of: Road, count: int = 0) -> list[str]:
    """Why messages of a fleet were refused here, as the owner's history tells; waits until there are so many."""
    store = of.app.services.use(AuditStore)

    def told() -> list[str]:
        store.index.catch_up()
        events = every_event(store, Filter())
        return [
            str(e["reason"] or e["errorCode"])
            for e in events
            if str(e["principal"]).startswith("fleet:") and not e["op"]
        ]

    await until(lambda: len(told()) >= count)
    return told()


@dataclass
class Machine:
    """One machine of a test fleet."""

    road: Road
    member: Member
    joined: Joined
    name: str

    @property
    def root(self) -> Path:
        return self.road.root

    @property
    def feed(self) -> Feed:
        """The history for its first hub."""
        return next(iter(self.member.feeds.values()))

    async def refusals(self, count: int = 0) -> list[str]:
        """Why this machine refused messages, as its own history tells; waits until there are so many."""
        return await refusals(self.road, count)

    async def restart(self, kind: type[Member] = Member) -> None:
        """A new run of the same machine, as after a restart of its service."""
        await self.member.aclose()
        self.member = kind(self.road.app.services, self.road.app.dispatcher, signer_of(self.road), self.joined, BEAT)
        self.member.start()


class Fleet:
    """The hub's road, the hub, and the machines that joined."""

    def __init__(
        self,
        stack: AsyncExitStack,
        folder: Path,
        server: NatsServer,
        hub_road: Road,
        hub: Hub,
        history: FleetHistory,
    ) -> None:
        self._stack, self._folder, self.history = stack, folder, history
        self.server, self.hub_road, self.hub = server, hub_road, hub
        self.signer = signer_of(hub_road)
        self.machines: dict[str, Machine] = {}
        self.hubs = [self]
        """All hubs of this test."""

    @staticmethod
    @asynccontextmanager
    async def open(folder: Path, *, resume_s: float = 5.0, **server_settings: Any) -> AsyncIterator["Fleet"]:
        server = NatsServer(folder / "nats", **server_settings).start()
        try:
            async with AsyncExitStack() as stack:
                yield await Fleet._opened(stack, folder, server, "hub", resume_s)
        finally:
            server.kill()

    @staticmethod
    async def _opened(stack: AsyncExitStack, folder: Path, server: NatsServer, name: str, resume_s: float) -> "Fleet":
        desk = await stack.enter_async_context(road(folder / name, f"{name}-id", name))
        settings = HubSettings(place=ServerAddress(url=server.url))
        file = FleetFile(desk.home)
        signer = signer_of(desk)
        machines = Machines(settings, signer.fingerprint, lambda kept: file.change(hub=kept))
        hub = Hub(desk.app.dispatcher, signer, machines, resume_s)
        hub.start()
        desk.app.dispatcher.routes = FleetRoutes(hub, desk.app.catalog)
        history = FleetHistory(hub, Archive(desk.home, signer.fingerprint), fetch_s=0.5)
        history.start()
        stack.push_async_callback(hub.aclose)
        stack.push_async_callback(history.aclose)
        assert await hub.link.wait_up(DEADLINE_S)
        return Fleet(stack, folder, server, desk, hub, history)

    async def beside(self, name: str, server: NatsServer | None = None) -> "Fleet":
        """Another hub with a state folder of its own, on this server or another."""
        other = await Fleet._opened(self._stack, self._folder, server or self.server, name, 5.0)
        other.hubs = self.hubs
        self.hubs.append(other)
        return other

    async def share(self, machine: Machine, *grants: str) -> None:
        """A machine of another hub starts anew and lets this one use it too, and this one trusts it."""
        hub = AllowedHub(
            fingerprint=self.signer.fingerprint, name=self.hub_road.app.config.machine_name, grants=list(grants)
        )
        machine.joined = machine.joined.model_copy(update={"hubs": [*machine.joined.hubs, hub]})
        await machine.restart()
        key = machine.member._signer.fingerprint
        known = self.hub.machines.by_key
        await until(lambda: key in known and known[key].presence is not None)
        if not known[key].trusted:
            self.hub.machines.trust(key)
        await until(lambda: self.state(machine.road.app.config.machine_id) == "online")
        for one in self.hubs:
            if any(allowed.fingerprint == one.signer.fingerprint for allowed in machine.joined.hubs):
                await one.heard(machine)

    async def heard(self, machine: Machine) -> None:
        """Wait until this hub knows the machine's present run; a call to the run before would be lost."""
        known, key = self.hub.machines.by_key, machine.member._signer.fingerprint

        def is_known() -> bool:
            here = known[key].presence if key in known else None
            return here is not None and here.epoch == machine.member._epoch

        await until(is_known)

    async def has_all(self, machine: Machine) -> int:
        """The number of the machine's newest record, once this hub has it."""
        journal, key = machine.road.app.services.use(AuditStore).journal, machine.member._signer.fingerprint
        await until(lambda: self.history._archive.last(key) >= journal.head.number)
        return self.history._archive.last(key)

    async def add(
        self,
        name: str,
        *grants: str,
        machine_id: str | None = None,
        trust: bool = True,
        computer: Any = None,
        policy: dict[str, Any] | None = None,
        also: tuple[AllowedHub, ...] = (),
    ) -> Machine:
        """A machine joins, and is trusted unless said otherwise; `also` are further hubs that it allows."""
        label = machine_id or f"{name}-id"
        home = await self._stack.enter_async_context(road(self._folder / label, label, name, computer, policy))
        signer = signer_of(home)
        hubs = [AllowedHub(fingerprint=self.signer.fingerprint, name="hub", grants=list(grants or ("app",))), *also]
        joined = Joined(place=ServerAddress(url=self.server.url), seat=seat_of(signer.fingerprint), hubs=hubs)
        member = Member(home.app.services, home.app.dispatcher, signer, joined, BEAT)
        machine = self.machines[label] = Machine(home, member, joined, name)
        self._stack.push_async_callback(lambda: machine.member.aclose())
        member.start()
        await until(lambda: signer.fingerprint in self.hub.machines.by_key)
        if trust:
            self.hub.machines.trust(signer.fingerprint)
            await until(lambda: self.state(label) == "online")
        return machine

    async def restart(self, machine: Machine, kind: type[Member] = Member) -> None:
        """A new run of a machine, heard of by the hub."""
        await machine.restart(kind)
        await self.heard(machine)

    def state(self, machine_id: str) -> str | None:
        """What the hub says of a machine."""
        listed = {item["machineId"]: item["state"] for item in self.hub.machines.listing()}
        return listed.get(machine_id)

    async def call(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        return await self.hub_road.call(op, target, **parts)

    async def told(self, address: str, count: int, view: str = "timeline", **more: Any) -> list[dict[str, Any]]:
        """The fleet's history, once it has so many events."""
        asked = {"limit": 100, "terms": None, "cursor": None, **more}

        async def events() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = (await self.history.answer(address, view=view, **asked))["events"]
            return found

        async def are_enough() -> bool:
            return len(await events()) >= count

        await until_awaited(are_enough, step_s=0.05)
        return await events()

    @asynccontextmanager
    async def wiretap(self, listens: str) -> AsyncIterator[tuple[FleetLink, list[Any]]]:
        """What a hostile server or neighbour sees and can send."""
        heard: list[Any] = []

        async def keep(message: Any) -> None:
            heard.append(message)

        async def nothing() -> None:
            return None

        link = FleetLink(ServerAddress(url=self.server.url), "_INBOX.tap", Wants({listens: keep}, nothing, nothing))
        link.start()
        assert await link.wait_up(DEADLINE_S)
        try:
            yield link, heard
        finally:
            await link.aclose()
