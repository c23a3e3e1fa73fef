"""Desktop operations on a machine without a desktop: refused at once with the reason, after policy had its say."""

from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.local.probe import this_computer
from support.road import Road, computer_scope

pytestmark = pytest.mark.anyio

CALLS: list[tuple[str, Any, dict[str, Any] | None]] = [
    ("ui.tree", "focused", None),
    ("desktop.observe", None, None),
    ("desktop.find", None, {"selector": {"name": "x"}}),
    ("desktop.wait_until", None, {"condition": {"idle": 0.1}}),
    ("desktop.click", "e1.abcd", None),
    ("desktop.move", "e1.abcd", None),
    ("desktop.drag", "e1.abcd", {"to": {"ref": "e2.abcd"}}),
    ("desktop.scroll", "e1.abcd", {"delta": {"y": 1}}),
    ("desktop.type_text", None, {"text": "x"}),
    ("desktop.press", None, {"key": "enter"}),
    ("desktop.hotkey", None, {"keys": ["ctrl", "s"]}),
]


@pytest.mark.parametrize(("op", "target", "given"), CALLS, ids=[call[0] for call in CALLS])
async def test_it_says_why(tmp_path: Path, op: str, target: Any, given: dict[str, Any] | None) -> None:
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=this_computer({})) as road:
        reply = await road.call(op, target, scope="desk", input=given)
        assert reply["error"]["code"] in ("unsupported_platform", "stale_reference")
        assert reply["durationMs"] < 30_000


@pytest.mark.parametrize(("op", "target", "given"), CALLS, ids=[call[0] for call in CALLS])
async def test_policy_comes_first(tmp_path: Path, op: str, target: Any, given: dict[str, Any] | None) -> None:
    scope = {**computer_scope(), "capabilities": ["screen:capture"]}
    async with Road.open(tmp_path, scopes=[scope], computer=this_computer({})) as road:
        assert await road.code(op, target, scope="desk", input=given) == "permission_denied"


@pytest.mark.parametrize(
    "confirm",
    [{"phrase": "CONFIRM"}, {"token": "guess"}, {"token": "x", "approvedAt": "2026-02-09", "approver": "user"}],
)
async def test_a_claimed_approval_in_the_input_is_none(tmp_path: Path, confirm: dict[str, str]) -> None:
    given = {"target": {"selector": {"byRole": "button", "titleContains": "Delete"}}, "confirm": confirm}
    async with Road.open(tmp_path, scopes=[computer_scope(confirm="act")], computer=this_computer({})) as road:
        assert await road.code("desktop.click", scope="desk", input=given) == "confirm_required"


async def test_a_wrong_field_of_a_target_is_named(tmp_path: Path) -> None:
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=this_computer({})) as road:
        reply = await road.call("desktop.click", {"name": "Send"}, scope="desk")
        assert reply["error"]["code"] == "invalid_request"
        assert reply["error"]["message"] == "`target.name`: there is no such field."
