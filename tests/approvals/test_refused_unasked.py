"""What the policy refuses, or what cannot be done as things are, is refused before the owner is asked about it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.computer.simulated.world import World
from support.pair import events_of
from support.road import Road, computer_scope, folder_scope

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
CONTENT = {"content": "x"}


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Road]:
    policy: Json = {"confirm": "all", "allowedCommands": ["make *", "rm *", "true"], "deniedCommands": ["rm *"]}
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", **policy)]) as road:
        (road.root / "keep.txt").write_text("kept")
        (road.root / "package.json").write_text('{"scripts": {"clean": "rm -rf ."}}')
        yield road


def command(line: str) -> Json:
    return {"op": "command.run", "target": ".", "input": {"command": line}}


REFUSED = [
    (command("rm -rf ."), "permission_denied"),
    (command("git log"), "permission_denied"),
    ({**command("rm -rf ."), "op": "command.start"}, "permission_denied"),
    ({"op": "package.run", "target": ".", "input": {"script": "clean"}}, "permission_denied"),
    ({**command("true"), "target": "missing"}, "not_found"),
    ({"op": "file.write", "target": "../x", "input": CONTENT}, "path_out_of_scope"),
    ({"op": "file.write", "target": ".git/hooks/x", "input": CONTENT}, "permission_denied"),
    ({"op": "file.write", "target": "sub/y.txt", "input": CONTENT}, "not_found"),
    ({"op": "file.mkdir", "target": "sub/deep"}, "not_found"),
    ({"op": "file.delete", "target": "missing.txt"}, "not_found"),
    ({"op": "file.move", "target": "missing.txt", "input": {"destination": "there.txt"}}, "not_found"),
    ({"op": "file.move", "target": "keep.txt", "input": {"destination": "sub/there.txt"}}, "not_found"),
    ({"op": "file.copy", "target": "missing.txt", "input": {"destination": "there.txt"}}, "not_found"),
    ({"op": "file.create", "target": "keep.txt", "input": CONTENT}, "already_exists"),
    ({"op": "command.stop", "target": "proc_0123456789abcdef01234567"}, "process_not_found"),
    ({"op": "command.send", "target": "proc_0123456789abcdef01234567", "input": {"text": "x"}}, "process_not_found"),
    ({"op": "codex.stop", "target": "codex_0123456789abcdef01234567"}, "process_not_found"),
    ({"op": "artifact.attach", "target": "missing.txt"}, "not_found"),
    ({"op": "artifact.ingest", "target": None, "input": {"path": "missing.txt"}}, "not_found"),
    ({"op": "artifact.ingest", "target": None, "input": {}}, "invalid_request"),
    ({"op": "git.unstage", "target": ".", "input": {"paths": ["keep.txt"]}}, "not_found"),
    ({"op": "git.worktree_create", "target": ".", "input": {"path": "keep.txt", "branch": "x"}}, "not_found"),
    ({"op": "browser.open", "target": "missing.html"}, "not_found"),
    ({"op": "browser.click", "target": "e1.abcd"}, "process_not_found"),
    ({"op": "browser.close", "target": None}, "process_not_found"),
    ({"op": "browser.pdf", "target": None}, "process_not_found"),
    *(({"op": f"browser.{name}", "target": "start"}, "process_not_found") for name in ("har", "record", "trace")),
    *(({"op": f"browser.{name}", "target": "stop"}, "process_not_found") for name in ("har", "record", "trace")),
]


@pytest.mark.parametrize(("wanted", "code"), REFUSED, ids=lambda one: one if isinstance(one, str) else one["op"])
async def test_it_is_refused_with_its_own_code_and_no_one_is_asked(asking: Road, wanted: Json, code: str) -> None:
    shown: list[str] = []

    async def person(asked: ApprovalRequest) -> Answer | None:
        shown.append(asked.text)
        return "yes"

    async with asking.app.services.use(Approvals).attached("tests", person):
        parts = dict(wanted)
        assert await asking.code(parts.pop("op"), parts.pop("target"), **parts) == code
        assert await asking.code("confirm.issue", input=wanted) == code
    assert shown == [] and asking.app.services.use(Approvals).waiting() == []
    assert sorted(path.name for path in asking.root.iterdir()) == ["keep.txt", "package.json"]
    assert (asking.root / "keep.txt").read_text() == "kept"


async def test_such_refusals_are_no_denials_of_the_owner(asking: Road) -> None:
    async def person(asked: ApprovalRequest) -> Answer | None:
        return "yes"

    async with asking.app.services.use(Approvals).attached("tests", person):
        for _ in range(4):
            assert await asking.code("command.run", ".", input={"command": "rm -rf ."}) == "permission_denied"
        assert (await asking.call("file.delete", "keep.txt"))["ok"]
    refused, [done] = await events_of(asking, "command.run"), await events_of(asking, "file.delete")
    assert {(event["decision"], event["approval"]) for event in refused} == {("deny", None)}
    assert done["approval"]["said"] == "yes"


async def test_a_missing_folder_that_it_would_make_is_asked_about(asking: Road) -> None:
    written = await asking.call("file.write", "sub/y.txt", input=CONTENT, options={"createParents": True})
    assert written["error"]["code"] == "confirm_required"
    assert not (asking.root / "sub").exists()


DESKTOP_REFUSED = [
    ({"op": "screen.record", "target": "stop"}, "not_found"),
    ({"op": "screen.record", "target": "start", "input": {"display": "nowhere"}}, "not_found"),
    ({"op": "artifact.capture", "target": "nowhere"}, "not_found"),
    ({"op": "artifact.capture", "target": "nowhere", "input": {"source": "window"}}, "not_found"),
    ({"op": "artifact.capture", "target": "nowhere", "input": {"source": "process"}}, "process_not_found"),
    ({"op": "clipboard.write", "target": None, "input": {}}, "invalid_request"),
    ({"op": "clipboard.write", "target": None, "input": {"imageBase64": "bm90IGEgcGljdHVyZQ=="}}, "invalid_request"),
]


@pytest.mark.parametrize(
    ("wanted", "code"), DESKTOP_REFUSED, ids=lambda one: one if isinstance(one, str) else one["op"]
)
async def test_a_fault_on_the_desktop_is_refused_and_no_one_is_asked(tmp_path: Path, wanted: Json, code: str) -> None:
    shown: list[str] = []

    async def person(asked: ApprovalRequest) -> Answer | None:
        shown.append(asked.text)
        return "no"

    desk = [computer_scope(confirm="all")]
    async with (
        Road.open(tmp_path, desk, SimulatedComputer(World())) as road,
        road.app.services.use(Approvals).attached("tests", person),
    ):
        parts = dict(wanted)
        assert await road.code(parts.pop("op"), parts.pop("target"), scope="desk", **parts) == code
        assert shown == []
        given = {"input": {"text": "one\ntwo"}}
        assert await road.code("clipboard.write", scope="desk", **given) == "denied_by_person"
    assert "puts this text on the clipboard:" in shown[0] and "two" in shown[0]
