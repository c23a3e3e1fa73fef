"""A file that holds a stored secret: no request for approval, no progress and no answer to a paired computer shows it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import ApprovalRequest
from computer_linker.dispatch.leaving import masked, masked_report
from computer_linker.model.envelope import Call, Reply
from computer_linker.transports.http.approval_html import list_page
from computer_linker.transports.mcp.dialog import question
from computer_linker.transports.peer.facets import Plain
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.canary import CANARY, is_in
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio
SECRET = StoredSecret(name="token", host="api.example.org", variable="TOKEN", value=CANARY)


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "left.txt").write_text(f"token = {CANARY}\n")
    async with Road.open(tmp_path, [folder_scope(root, confirm="all")]) as made:
        made.app.services.use(Vault).add(SECRET, replace=False)
        yield made


async def _asked(road: Road, call: Call) -> tuple[ApprovalRequest, list[str]]:
    """The request of a call that a client with a dialog sends, and what its dialog showed."""
    shown: list[str] = []

    async def ask(asked: ApprovalRequest) -> None:
        shown.append(str(question(asked)))

    await road.app.dispatcher.call(call, LOCAL, None, ask)
    (asked,) = road.app.services.use(Approvals).waiting()
    return asked, shown


@pytest.mark.parametrize(
    "call",
    [
        Call("app", "file.write", "left.txt", {"content": "token = x\n"}),
        Call("app", "file.write", "new.txt", {"content": CANARY}),
        Call("app", "file.patch", None, {"edits": [{"path": "left.txt", "oldText": "token", "newText": "key"}]}),
        Call("app", "batch.run", None, {"operations": [{"op": "file.write", "target": "left.txt", "input": {"content": "x"}}]}),
    ],
)  # fmt: skip
async def test_no_request_shows_it(road: Road, call: Call) -> None:
    asked, shown = await _asked(road, call)
    (dialog,) = shown
    page = list_page([(asked, ())], "csrf", "machine")
    for text in (dialog, asked.text, page):
        assert "[secret token]" in text and not is_in(text), text
    assert asked.can_be_allowed


async def test_a_yes_is_still_for_the_bytes_themselves(road: Road) -> None:
    call = Call("app", "file.write", "left.txt", {"content": "token = x\n"})
    asked, _ = await _asked(road, call)
    road.app.services.use(Approvals).answer(asked.id, "yes")
    assert (await road.app.dispatcher.call(call, LOCAL)).ok
    assert (road.root / "left.txt").read_text() == "token = x\n"


async def test_a_yes_ends_when_the_file_has_another_secret(road: Road) -> None:
    call = Call("app", "file.write", "left.txt", {"content": "token = x\n"})
    asked, _ = await _asked(road, call)
    road.app.services.use(Approvals).answer(asked.id, "yes")
    (road.root / "left.txt").write_text("token = [secret token]\n")
    reply = await road.app.dispatcher.call(call, LOCAL)
    assert reply.envelope["error"]["code"] == "conflict"
    assert (road.root / "left.txt").read_text() == "token = [secret token]\n"


async def test_the_plain_answer_of_a_facet_is_masked(road: Road) -> None:
    reply = Reply({"ok": True, "data": Plain({"text": f"it is {CANARY}", "lines": [CANARY]})})
    data: Any = masked(road.app.services, reply).envelope["data"]
    assert data == replace(data, value={"text": "it is [secret token]", "lines": ["[secret token]"]})


async def test_progress_is_masked(road: Road) -> None:
    heard: list[str] = []
    report = masked_report(road.app.services, lambda message, _current, _total: heard.append(message))
    assert report is not None
    report(f"reading {CANARY}", 1, 2)
    assert heard == ["reading [secret token]"]
