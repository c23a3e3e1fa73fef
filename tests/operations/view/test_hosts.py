"""The hosts that the programs of a view spoke to, in what is shown of it."""

from pathlib import Path
from typing import Any

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
            assert shown["network"] == "some" and shown["program"] is None
            with anyio.fail_after(60):
                while not (shown := await road.data("view.show", ran["view"]["viewId"]))["refusedHosts"]:
                    continue
            assert shown["refusedHosts"] == [f"refused.example.org:{server.port}"]
            assert (await road.data("view.show", other["view"]["viewId"]))["hosts"] == []
            kept = await road.data("view.keep", ran["view"]["viewId"], options={"evidence": True})
            text = (await road.data("artifact.read", kept["artifact"]))["text"]
            for line in (
                f"connected to {NAME}:{server.port}",
                f"tried and was refused: refused.example.org:{server.port}",
                "left running: no process",
            ):
                assert line in text.splitlines(), text


@pytest.mark.parametrize(("network", "line"), [(False, "network: closed to it"), (True, "network: open to it, so")])
async def test_where_hosts_are_not_known_it_says_why(tmp_path: Path, network: bool, line: str) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"], network=network)]) as road:
        made = {"input": {"command": ["touch", "made"]}, "options": {"view": True}}
        view_id = (await road.data("command.run", ".", **made))["view"]["viewId"]
        assert (await road.data("view.show", view_id))["network"] == ("open" if network else "closed")
        kept = await road.data("view.keep", view_id, options={"evidence": True})
        assert line in (await road.data("artifact.read", kept["artifact"]))["text"]


async def test_a_view_names_the_program_that_runs_in_it(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"])]) as road:
        waits: dict[str, Any] = {"input": {"command": ["sleep", "1000"]}, "options": {"view": True}}
        started = await road.data("command.start", ".", **waits)
        shown = await road.data("view.show", started["viewId"])
        assert shown["running"] and shown["program"] == "sleep 1000"
        await road.data("command.stop", started["processId"])
        assert (await road.data("view.show", started["viewId"]))["program"] is None
