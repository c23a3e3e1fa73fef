"""The hosts that the programs of a view spoke to, in what is shown of it."""

from pathlib import Path

import anyio
import pytest

from support.named_server import named_server
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
NAME = "packages.example.org"


async def test_a_view_names_the_hosts_its_programs_connected_to(tmp_path: Path) -> None:
    with named_server() as server:
        (tmp_path / "root").mkdir()
        network = [f"{NAME}:{server.port}=127.0.0.1"]
        scope = folder_scope(tmp_path / "root", allowedCommands=["*"], network=network)
        async with Road.open(tmp_path, [scope]) as road:
            other = await road.data("command.run", ".", input={"command": ["true"]}, options={"view": True})
            line = f"curl -sS http://{NAME}:{server.port}/x > got; curl -s http://refused.example.org:{server.port}/x; true"
            ran = await road.data("command.run", ".", input={"command": ["sh", "-c", line]}, options={"view": True})
            with anyio.fail_after(60):
                while not (shown := await road.data("view.show", ran["view"]["viewId"]))["hosts"]:
                    continue
            assert shown["hosts"] == [f"{NAME}:{server.port}"] and [each["path"] for each in shown["changes"]] == [
                "got"
            ]
            assert (await road.data("view.show", other["view"]["viewId"]))["hosts"] == []
