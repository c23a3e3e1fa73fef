"""Confirmation tokens against doubled keys, restarts, guesses, likenesses and batches; counted by what reached the window."""

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.audit.layout import segment_path
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.computer.simulated.world import SimulatedControl
from computer_linker.model.geometry import Rect
from computer_linker.policy.digest import canonical_request, digest_of
from support.road import Road, computer_scope, folder_scope
from support.service import META, TOKEN, modern_headers, serving

pytestmark = pytest.mark.anyio

DELETE = {"target": {"selector": {"byRole": "button", "titleContains": "Delete"}}}
PAY = {"target": {"selector": {"byRole": "button", "titleContains": "Pay"}}}


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    computer = SimulatedComputer()
    window = computer.world.open("editor")
    for at, name in enumerate(("Delete", "Pay")):
        window.controls.append(SimulatedControl("button", name, Rect(x=10 + 100 * at, y=50, width=80, height=30)))
    async with Road.open(tmp_path, [computer_scope(confirm="act")], computer) as opened:
        yield opened


def pressed(road: Road) -> list[str]:
    """The names of what was clicked, in order."""
    computer = road.app.computer
    assert isinstance(computer, SimulatedComputer)
    return [one["name"] for one in computer.world.windows[0].log if one["event"] == "pressed"]


async def approved(road: Road, given: dict[str, Any] = DELETE) -> str:
    """A token for a click, with a person's yes."""
    issued = await road.data("confirm.issue", scope="desk", input={"op": "desktop.click", "input": given})
    assert road.app.services.use(Approvals).answer(issued["approvalId"], "yes")
    return str(issued["token"])


async def click(road: Road, token: str, given: dict[str, Any] = DELETE) -> dict[str, Any]:
    return await road.call("desktop.click", scope="desk", input={**given, "confirm": {"token": token}})


async def test_a_batch_clicks_once_and_asks_for_the_rest(road: Road) -> None:
    """CONF-028."""
    item = {"op": "desktop.click", "input": {**DELETE, "confirm": {"token": await approved(road)}}}
    told = (await road.call("batch", scope="desk", input={"operations": [item, item]}))["data"]
    assert [one["ok"] for one in told["results"]] == [True, False], told
    assert told["results"][1]["error"]["code"] == "confirm_required"
    assert pressed(road) == ["Delete"]


async def test_a_request_that_begins_alike_is_another_request(road: Road) -> None:
    """CONF-023: the whole digest is compared, and a digest of the same first sixteen digits is refused."""
    approvals, token = road.app.services.use(Approvals), await approved(road)
    right = digest_of(canonical_request("desk", "desktop.click", None, DELETE, None))
    alike = right[:16] + hashlib.sha256(b"other").hexdigest()[16:]
    (asked,) = approvals.ledger._asked.values()
    assert asked.digest == right and len(right) == 64
    asked.digest = alike
    assert (await click(road, token))["error"]["code"] == "confirm_required"
    assert pressed(road) == []
    asked.digest = right
    assert (await click(road, token, PAY))["error"]["code"] == "confirm_required"
    assert pressed(road) == []


async def test_guesses_open_nothing_cost_what_waits_and_fill_no_disk(road: Road) -> None:
    """CONF-022: ten wrong ones take back all that waits for the guesser; the flood of them is counted, not written out."""
    token = await approved(road)
    assert len(token) >= 43
    for number in range(2_500):
        assert (await click(road, f"guess-{number}"))["error"]["code"] == "confirm_required"
    assert (await click(road, token))["error"]["code"] == "confirm_required", "guessing cost the good one too"
    assert pressed(road) == []
    assert segment_path(road.home / "audit", 1).stat().st_size < 1_000_000


async def test_a_yes_does_not_outlive_the_service(tmp_path: Path) -> None:
    """CONF-016: nor the token it was for, nor a yes to one call."""
    scopes = [folder_scope(tmp_path / "root", confirm="all")]
    async with Road.open(tmp_path, scopes) as before:
        (before.root / "a.txt").write_text("kept")
        issued = await before.data("confirm.issue", input={"op": "file.delete", "target": "a.txt"})
        asked = await before.call("file.mkdir", "made")
        approvals = before.app.services.use(Approvals)
        assert approvals.answer(issued["approvalId"], "yes")
        assert approvals.answer(asked["error"]["details"]["approvalId"], "yes")
    async with Road.open(tmp_path, scopes) as after:
        token = {"token": issued["token"]}
        assert await after.code("file.delete", "a.txt", confirm=token) == "confirm_required"
        assert await after.code("file.delete", "a.txt") == "confirm_required"
        assert await after.code("file.mkdir", "made") == "confirm_required"
        assert [path.name for path in after.root.iterdir()] == ["a.txt"]


DOUBLED = (
    '{"scope":"asked","op":"file.delete","target":"a.txt","target":"b.txt","confirm":{"token":"$T"}}',
    '{"scope":"asked","op":"file.delete","target":"a.txt","confirm":{"token":"x"},"confirm":{"token":"$T"}}',
    '{"scope":"asked","op":"file.delete","op":"file.delete","target":"a.txt","confirm":{"token":"$T","token":"$T"}}',
    '{"scope":"asked","op":"file.delete","target":"a.txt","options":{"recursive":false,"recursiv\\u0065":true},"confirm":{"token":"$T"}}',
)


def test_doubled_keys_are_refused_before_anything_is_compared(tmp_path: Path) -> None:
    """CONF-009, over the MCP endpoint and the JSON API."""
    scopes = [folder_scope(tmp_path / "root", "asked", confirm="all")]
    issue = {"scope": "asked", "op": "confirm.issue", "input": {"op": "file.delete", "target": "a.txt"}}
    with serving(tmp_path, token=TOKEN, scopes=scopes) as service:
        for name in ("a.txt", "b.txt"):
            (tmp_path / "root" / name).write_text("kept")
        link = service.http()
        token = str(link.control("computer_operation", **issue)["data"]["token"])
        for doubled in DOUBLED:
            text = doubled.replace("$T", token)
            control = '{"action":"computer_operation",' + text[1:]
            status, body = link.send("POST", "/api/v1/control", control.encode())
            told = json.loads(body)
            assert not told["ok"] and told["error"]["code"] == "invalid_request", (status, told)
            params = f'{{"name":"computer_operation","arguments":{text},"_meta":{json.dumps(META)}}}'
            message = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
            headers = modern_headers("tools/call", {"name": "computer_operation"})
            status, body = link.send("POST", "/mcp", message.encode(), headers)
            assert status == 400 or "error" in json.loads(body), body
        link.close()
    assert sorted(path.name for path in (tmp_path / "root").iterdir()) == ["a.txt", "b.txt"]
