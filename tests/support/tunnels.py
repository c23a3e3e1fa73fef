"""A bench for tunnels: a supervisor on the real process launcher, with stand-in programs for what cannot be had here."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from computer_linker.computer.local.linux.processes import LinuxProcesses
from computer_linker.config.schema import Config
from computer_linker.tunnels.base import Surroundings
from computer_linker.tunnels.record import TunnelRecord
from computer_linker.tunnels.supervisor import Pace, Supervisor
from support.service import is_alive
from support.standins import digest, install

DEADLINE_S = 120.0
QUICK = Pace(first_s=0.05, most_s=0.2, tries=4, steady_s=5.0, poll_s=0.05)


@dataclass
class Bench:
    """A state folder, the config as it is now, and what was heard of the tunnel."""

    home: Path
    programs: Path
    processes: LinuxProcesses
    config: Config
    connect_s: float = DEADLINE_S
    heard: list[TunnelRecord] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        made = self.home / "tunnel"
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        return made

    @property
    def around(self) -> Surroundings:
        environment = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        return Surroundings(
            self.home, lambda: self.config, self.processes, self._find, lambda: self.config.owner_token, environment,
            poll_s=0.1, connect_s=self.connect_s,
        )  # fmt: skip

    def _find(self, name: str) -> str | None:
        path = self.programs / name
        return str(path) if path.exists() else None

    def program(self, name: str) -> Path:
        return install(self.programs, name)

    def misbehave(self, mode: str) -> None:
        (self.folder / "standin.json").write_text(json.dumps({"mode": mode}))

    def say(self, line: str) -> None:
        """Have the running stand-in say a line."""
        fresh = self.folder / "say.new"
        fresh.write_text(line)
        fresh.replace(self.folder / "say")

    def set(self, **tunnel: Any) -> None:
        """Change the `tunnel` part of the config, as a person would in the file."""
        wire = self.config.to_wire()
        for name, value in tunnel.items():
            wire["tunnel"][name] = {**wire["tunnel"][name], **value} if isinstance(value, dict) else value
        self.config = Config.from_wire(wire)

    def without_token(self) -> None:
        self.config = self.config.model_copy(update={"owner_token": None})

    def starts(self) -> list[dict[str, Any]]:
        """Every start of a stand-in, as it noted it."""
        path = self.folder / "starts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def running(self) -> list[int]:
        return [start["pid"] for start in self.starts() if is_alive(start["pid"])]

    def changed(self, record: TunnelRecord) -> None:
        self.heard.append(record)
        task = asyncio.get_running_loop().create_task(self._wake())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wake(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def until(self, state: str, count: int = 1) -> TunnelRecord:
        """The record, once this state was heard of so many times."""
        async with asyncio.timeout(DEADLINE_S), self._news:
            await self._news.wait_for(lambda: sum(record.state == state for record in self.heard) >= count)
        return [record for record in self.heard if record.state == state][count - 1]

    @asynccontextmanager
    async def supervised(self, name: Any, port: int = 39_399, pace: Pace = QUICK) -> AsyncIterator[Supervisor]:
        supervisor = Supervisor(name, self.around, port, self.changed, pace)
        task = asyncio.create_task(supervisor.run())
        try:
            yield supervisor
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=DEADLINE_S)

    def use_openai(self) -> Path:
        """A tunnel-client in place, with its digest, an id and a key."""
        program = self.program("tunnel-client")
        key = self.home / "api-key"
        key.write_text("sk-test-key-0123456789\n")
        key.chmod(0o600)
        self.set(openai={
            "program": str(program), "sha256": digest(program), "tunnelId": "tunnel_0123456789abcdef0123456789abcdef",
            "apiKeyFile": str(key),
        })  # fmt: skip
        return program
