"""Calls and answers of any size a client can use pass through a server with small messages; larger ones are refused."""

from pathlib import Path

import pytest

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.simulated.computer import SimulatedComputer, SimulatedScreen
from computer_linker.computer.simulated.world import World, one_display
from computer_linker.fleet import messages
from computer_linker.fleet.member import Member
from computer_linker.fleet.messages import CallBody
from computer_linker.fleet.seal import MAX_MESSAGE
from computer_linker.fleet.settings import AllowedHub
from computer_linker.fleet.streams import MAX_REQUEST
from computer_linker.model.envelope import Attachment, Reply
from computer_linker.model.geometry import Rect
from support.fleet import Fleet
from support.noise import noise
from support.road import LOCAL

pytestmark = pytest.mark.anyio


class Noise(SimulatedScreen):
    """A screen that no format makes smaller."""

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        whole = self._world.displays[0].bounds
        return Pixmap(whole.width, whole.height, whole.width * 4, noise(whole.width * whole.height * 4), whole)


def noisy(width: int, height: int) -> SimulatedComputer:
    display = one_display(width, height)
    world = World(displays=[display])
    computer = SimulatedComputer(world)
    computer.provide("screen", Noise(world), backend="simulated")
    return computer


class Lavish(Member):
    """A machine whose answer has more beside it than a fleet carries."""

    async def _performed(self, request: CallBody, hub: AllowedHub) -> Reply:
        reply = await super()._performed(request, hub)
        return Reply(reply.envelope, [Attachment("image/png", bytes(MAX_MESSAGE))])


async def test_a_whole_screen_comes_through_a_server_with_small_messages(tmp_path: Path) -> None:
    async with Fleet.open(tmp_path, max_payload=256 * 1024) as fleet:
        await fleet.add("laptop", "desk", computer=noisy(1920, 1080))
        wire = {"scope": "laptop/desk", "op": "screen.capture", "target": "primary", "options": {}}
        reply = await fleet.hub_road.app.dispatcher.call_wire(wire, LOCAL)
    assert reply.ok, reply.envelope
    (picture,) = reply.attachments
    assert picture.mime == "image/png" and len(picture.data) > 3 * 256 * 1024
    assert picture.data.endswith(b"IEND\xaeB`\x82")


async def test_an_answer_that_is_too_large_is_refused_at_once(tmp_path: Path) -> None:
    async with Fleet.open(tmp_path) as fleet:
        laptop = await fleet.add("laptop")
        (laptop.root / "a").write_text("a")
        await fleet.restart(laptop, Lavish)
        refused = await fleet.call("file.read", "a", scope="laptop/app")
        assert (refused["error"]["code"], refused["error"]["details"]) == ("limit_exceeded", {"computer": "laptop"})
        # It was done all the same, and only its answer could not be told.
        unknown = await fleet.call("file.write", "b", scope="laptop/app", input={"content": "b"})
        assert unknown["error"]["details"] == {"computer": "laptop", "effect": "unverifiable"}
        assert (laptop.root / "b").exists()


async def test_a_call_larger_than_the_servers_messages_arrives_whole(tmp_path: Path) -> None:
    async with Fleet.open(tmp_path, max_payload=256 * 1024) as fleet:
        laptop, others = await fleet.add("laptop"), [await fleet.add(f"other-{number}") for number in range(10)]
        content = "x" * 1_000_000
        written = await fleet.call("file.write", "b", scope="laptop/app", input={"content": content})
        assert (written["ok"], written["effect"]) == (True, "confirmed"), written
        assert (laptop.root / "b").read_text() == content
        all_of_them = await fleet.call("file.write", "c", scope="[all]/app", input={"content": content})
        assert all_of_them["data"]["failed"] == 0, all_of_them
        assert all((machine.root / "c").read_text() == content for machine in (laptop, *others))
        refused = await fleet.call("file.write", "../d", scope="laptop/app", input={"content": content})
        assert refused["error"]["code"] == "path_out_of_scope"
        assert not fleet.hub.streams._open and not laptop.member._streams._open


async def test_a_call_that_is_too_large_is_refused_and_nothing_sent(tmp_path: Path) -> None:
    async with Fleet.open(tmp_path) as fleet:
        laptop = await fleet.add("laptop")
        async with fleet.wiretap(messages.calls(laptop.joined.seat)) as (_, heard):
            refused = await fleet.call("file.write", "b", scope="laptop/app", input={"content": "x" * MAX_REQUEST})
            assert refused["error"]["code"] == "limit_exceeded"
            await fleet.hub.link.flush()
            assert not heard and not list(laptop.root.iterdir())
