"""A fleet: one call to 200 machines (simulated computers on a real NATS server) against the same call to one."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from benchmarks.fleet_copy import Server, copied
from benchmarks.ratio import Ratio
from computer_linker.computer.facets.files import Stat
from computer_linker.computer.local.portable.files import LocalFiles
from computer_linker.computer.simulated.computer import SimulatedComputer
from computer_linker.config.schema import Config
from computer_linker.fleet.hub import Hub
from computer_linker.fleet.machines import Machines
from computer_linker.fleet.member import Member, Times
from computer_linker.fleet.messages import seat_of
from computer_linker.fleet.routes import FleetRoutes
from computer_linker.fleet.seal import Signer
from computer_linker.fleet.settings import AllowedHub, HubSettings, Joined, ServerAddress
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.service.app import App, open_app
from computer_linker.system import event_loop
from computer_linker.transports.peer.identity import own_identity

MACHINES = 200
AWAY_S = 0.05
"""How far away each simulated machine is, there and back, as over the internet."""
_ROUNDS = 15
_OWNER = Principal(id="local:bench", proof="local_user", session="s", connection="c", client="bench")


class _Away(SimulatedComputer):
    """A simulated computer whose disk answers after the time a call travels."""

    def __init__(self, away_s: float) -> None:
        super().__init__()
        self.provide("files", _AwayFiles(away_s), backend="simulated")


class _AwayFiles(LocalFiles):
    def __init__(self, away_s: float) -> None:
        super().__init__()
        self._away_s = away_s

    async def stat(self, path: RootedPath) -> Stat:
        if self._away_s:
            await asyncio.sleep(self._away_s)
        return await super().stat(path)


def run() -> list[Ratio]:
    """The rows."""
    away = event_loop.run(_measured(AWAY_S))
    near = event_loop.run(_measured(0.0))
    return [
        Ratio(
            f"file.stat on {MACHINES} machines at once", away[1], away[0], 10,
            note=f"against one machine; each {AWAY_S * 1000:g} ms away. All share this computer: at no distance it is"
            f" {near[1] * 1000:.0f} ms against {near[0] * 1000:.1f} ms",
        ),
        Ratio(
            f"file.stat on {MACHINES} machines at once, at no distance", near[1], near[0] * MACHINES, 0.75,
            note="against one after another",
        ),
        *copied(),
    ]  # fmt: skip


async def _measured(away_s: float) -> tuple[float, float]:
    """Seconds of one machine and of all, medians taken in turn."""
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            home = Path(folder) / "hub"
            app = await stack.enter_async_context(_app(home, "hub", SimulatedComputer()))
            signer = Signer(own_identity(home, "hub"))
            server = Server(Path(folder))
            stack.callback(server.close)
            machines = Machines(HubSettings(place=ServerAddress(url=server.url)), signer.fingerprint, lambda _: None)
            hub = Hub(app.dispatcher, signer, machines)
            hub.start()
            stack.push_async_callback(hub.aclose)
            assert await hub.link.wait_up(20)
            child = _Machines(server.url, signer.fingerprint, Path(folder) / "machines", away_s)
            stack.callback(child.close)
            await asyncio.to_thread(child.wait)
            await _until_all(machines)
            routes = app.dispatcher.routes = FleetRoutes(hub, app.catalog)
            assert len(routes.computers()) == MACHINES
            one: list[float] = []
            many: list[float] = []
            for number in range(_ROUNDS + 1):
                one.append(await _timed(app, f"machine-{number}/app", 1))
                many.append(await _timed(app, "[all]/app", MACHINES))
            return statistics.median(one[1:]), statistics.median(many[1:])


async def _timed(app: App, scope: str, count: int) -> float:
    began = time.perf_counter()
    reply = await app.dispatcher.call_wire({"scope": scope, "op": "file.stat", "target": "a.txt"}, _OWNER)
    taken = time.perf_counter() - began
    assert reply.ok, reply.envelope
    if count > 1:
        data = reply.envelope["data"]
        assert (data["answered"], data["failed"]) == (count, 0), reply.envelope["warnings"]
    return taken


async def _until_all(machines: Machines) -> None:
    async with asyncio.timeout(60):
        while len(machines.by_key) < MACHINES:  # presence comes by itself
            await asyncio.sleep(0.05)
    for key in list(machines.by_key):
        machines.trust(key)


def _root(home: Path) -> Path:
    return home.with_name(f"{home.name}-files")


def _app(home: Path, machine_id: str, computer: SimulatedComputer) -> AbstractAsyncContextManager[App]:
    home.mkdir(mode=0o700, parents=True)
    scope = {"id": "app", "type": "folder", "roots": [str(_root(home))], "capabilities": ["fs:read"]}
    config = Config(machine_id=machine_id, machine_name=machine_id, scopes=[Scope.from_wire(scope)])
    return open_app(home, lambda: config, computer)


class _Machines:
    """All machines in a process of their own."""

    def __init__(self, url: str, hub: str, folder: Path, away_s: float) -> None:
        arguments = [sys.executable, "-m", "benchmarks.fleet", url, hub, str(folder), str(away_s)]
        self._child = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def wait(self) -> None:
        assert self._child.stdout is not None and self._child.stdout.readline() == b"up\n"

    def close(self) -> None:
        self._child.communicate(b"\n", timeout=60)


async def _be_machines(url: str, hub: str, folder: Path, away_s: float) -> None:
    async with AsyncExitStack() as stack:
        members = []
        for number in range(MACHINES):
            computer = _Away(away_s)
            home = folder / str(number)
            _root(home).mkdir(parents=True)
            (_root(home) / "a.txt").write_text("x")
            app = await stack.enter_async_context(_app(home, f"machine-{number}", computer))
            signer = Signer(own_identity(home, f"machine-{number}"))
            hubs = [AllowedHub(fingerprint=hub, grants=["app"])]
            joined = Joined(place=ServerAddress(url=url), seat=seat_of(signer.fingerprint), hubs=hubs)
            # Their histories go to 200 disks elsewhere, not to the one here while the calls are timed.
            member = Member(app.services, app.dispatcher, signer, joined, Times(heartbeat=30, history=3600))
            member.start()
            members.append(member)
            stack.push_async_callback(member.aclose)
        for member in members:
            assert await member.link.wait_up(60)
        sys.stdout.write("up\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    event_loop.run(_be_machines(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])))
