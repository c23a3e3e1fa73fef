"""A service of its own process with a computer to reach from afar. Lines of JSON on stdin arrange it and ask what reached it.

Run as a program: the first line it prints says where it listens.
"""

import asyncio
import json
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.simulated import SimulatedComputer, SimulatedWindow
from computer_linker.computer.simulated.world import World
from computer_linker.config.schema import Config
from computer_linker.dispatch.device_queues import DeviceQueues, Times
from computer_linker.model.geometry import Rect
from computer_linker.model.scope import Scope
from computer_linker.service.app import App, open_app
from computer_linker.transports.peer.server import PeerServer


class FarHost:
    """The far side: its computer, its config and its answers to the test."""

    def __init__(self, kind: str) -> None:
        self.world = World()
        self.computer: Computer = SimulatedComputer(self.world) if kind == "simulated" else this_computer()
        self.config = Config(machine_id="far-id", machine_name="far", scopes=[])
        self.server: PeerServer | None = None

    async def run(self, home: Path) -> None:
        async with open_app(home, lambda: self.config, self.computer) as app:
            # Every test is a caller of its own: none waits for the lease of the one before.
            app.dispatcher.queues = DeviceQueues(times=Times(lease=0.0))
            self.server = PeerServer(app.services, app.dispatcher)
            await self.server.listen(os.environ.get("FAR_LISTEN", "127.0.0.1"), 0)
            _say({"address": self.server.address})
            reader = asyncio.StreamReader()
            await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
            while line := await reader.readline():
                request = json.loads(line)
                _say(await self.answer(app, request.pop("do"), request))
            await self.server.aclose()

    async def answer(self, app: App, do: str, request: dict[str, Any]) -> Any:
        assert self.server is not None
        match do:
            case "scopes":
                scopes = [Scope.from_wire(scope) for scope in request["scopes"]]
                self.config = Config(machine_id="far-id", machine_name="far", scopes=scopes)
                return True
            case "invite":
                return self.server.invitations.make(tuple(request["grants"])).code
            case "reset":
                fresh = World()
                for one in fields(World):
                    setattr(self.world, one.name, getattr(fresh, one.name))
                return True
            case "open":
                window = self.world.open(request["app"], request["title"], Rect(**request["bounds"]), request["colour"])
                return window.id
            case "window":
                return _told(next((one for one in self.world.windows if one.id == request["id"]), None))
            case "keep_open":
                self.world.find(request["id"]).keeps_open = request["value"]
                return True
            case "windows":
                return [one.id for one in self.world.windows]
            case "events":
                from computer_linker.audit.store import AuditStore
                from computer_linker.audit.views import answer

                store = app.services.use(AuditStore)
                found = await answer(store, view="timeline", visible=None, limit=500, query=None, cursor=None)
                return found["events"]
        raise AssertionError(do)


def _told(window: SimulatedWindow | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return {"text": window.text, "log": window.log, "title": window.title, "keeps_open": window.keeps_open}


def _say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(FarHost(sys.argv[2]).run(Path(sys.argv[1])))
