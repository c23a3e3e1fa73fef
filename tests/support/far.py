"""A computer in another process, reached over a real link: what the facet tests see of it, and how they arrange it."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.model.geometry import Rect
from computer_linker.transports.peer.join import join
from computer_linker.transports.peer.routes import PeerRoutes
from computer_linker.transports.peer.table import PeerTable
from support.road import Road, computer_scope

_PROGRAM = Path(__file__).parent / "far_host.py"


class Far:
    """The far process, asked one line at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.address = "{}:{}".format(*self._line()["address"])

    def ask(self, do: str, **request: Any) -> Any:
        """Have it do something, or tell something."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()
        return self._line()

    def _line(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the far side ended"
        return json.loads(line)


@contextmanager
def far_process(
    folder: Path, kind: str = "simulated", env: dict[str, str] | None = None, inside: tuple[str, ...] = ()
) -> Iterator[Far]:
    """A far side that ends with the body; `inside` is a program that starts it somewhere else."""
    home = folder / "far-home"
    home.mkdir(mode=0o700)
    process = subprocess.Popen(
        [*inside, sys.executable, str(_PROGRAM), str(home), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **(env or {}), "PYTHONPATH": str(_PROGRAM.parent.parent)},
    )  # fmt: skip
    try:
        yield Far(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@asynccontextmanager
async def reached(far: Far, folder: Path, scopes: list[dict[str, Any]] | None = None) -> AsyncIterator[RemoteComputer]:
    """The far computer from here, paired and with these scopes given."""
    async with near_road(far, folder, [computer_scope()] if scopes is None else scopes) as road:
        yield await road.app.services.use(PeerRoutes).remote_computer("far")


@asynccontextmanager
async def near_road(far: Far, folder: Path, scopes: list[dict[str, Any]]) -> AsyncIterator[Road]:
    """This side: a road of its own, which knows the far computer as `far` and was given its scopes."""
    far.ask("scopes", scopes=scopes)
    code = far.ask("invite", grants=[scope["id"] for scope in scopes])
    near = folder / "near"
    near.mkdir()
    async with Road.open(near) as road:
        # Every test is a machine of its own: another key under a known id would be refused.
        object.__setattr__(road.app.config, "machine_id", f"near-{secrets.token_hex(8)}")
        routes = road.app.dispatcher.routes = road.app.services.use(PeerRoutes)
        peer, _ = await join(far.address, code, routes.own(None))
        road.app.services.use(PeerTable).add(replace(peer, name="far"))
        yield road


@dataclass
class FarWindow:
    """A simulated window over there."""

    far: Far
    id: str

    @property
    def log(self) -> list[dict[str, Any]]:
        return self._told()["log"]  # type: ignore[no-any-return]  # JSON

    @property
    def text(self) -> str:
        return self._told()["text"]  # type: ignore[no-any-return]  # JSON

    @property
    def title(self) -> str:
        return self._told()["title"]  # type: ignore[no-any-return]  # JSON

    def keep_open(self) -> None:
        self.far.ask("keep_open", id=self.id, value=True)

    def clicks(self, count: int) -> list[dict[str, Any]]:
        clicks = [one for one in self.log if one["event"] == "click"]
        return [{name: one[name] for name in ("button", "x", "y")} for one in clicks][:count]

    def typed(self, text: str) -> str:
        return self.text

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = self.far.ask("window", id=self.id)
        return told


@dataclass
class RemoteScene:
    """A scene whose desktop is in another process."""

    far: Far
    computer: RemoteComputer

    def window(self, title: str, bounds: Rect, colour: int = 0x336699) -> FarWindow:
        made = self.far.ask("open", app=title.lower(), title=title, bounds=bounds.model_dump(), colour=colour)
        return FarWindow(self.far, made)
