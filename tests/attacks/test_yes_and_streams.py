"""A file that a paired machine streams here: the person sees which content comes, and only that is written (F17)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import ApprovalRequest
from computer_linker.approvals.standing import extents_of
from computer_linker.computer.facets.files import Streamed
from computer_linker.computer.remote.flow import Flow
from computer_linker.errors import Conflict, InvalidRequest
from computer_linker.model.envelope import Call
from support.pair import Pair, open_pair
from support.road import LOCAL, folder_scope

pytestmark = pytest.mark.anyio
PUSH = {"destination": "in.txt", "destinationScope": "laptop/app"}


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Pair]:
    async with open_pair(tmp_path, [folder_scope(tmp_path / "laptop" / "root", confirm="all")]) as pair:
        await pair.paired("app")
        (pair.desk.root / "s.txt").write_text("seen")
        yield pair


def waiting(pair: Pair) -> ApprovalRequest:
    [asked] = pair.laptop.app.services.use(Approvals).waiting()
    return asked


def answer(pair: Pair, given: Any) -> None:
    assert pair.laptop.app.services.use(Approvals).answer(waiting(pair).id, given)


async def push(pair: Pair) -> dict[str, Any]:
    sent: dict[str, Any] = await pair.desk.call("file.copy", "s.txt", input=PUSH, options={"overwrite": True})
    return sent


async def test_a_streamed_file_is_shown_by_size_and_digest_and_another_content_is_asked_for_anew(asking: Pair) -> None:
    """Found: `m` to one streamed file covered every later content."""
    assert (await push(asking))["error"]["code"] == "confirm_required"
    assert f"4 bytes, sha256 {sha256(b'seen').hexdigest()}" in waiting(asking).text
    answer(asking, "same")
    arrived = asking.laptop.root / "in.txt"
    assert (await push(asking))["ok"] and arrived.read_text() == "seen"
    arrived.unlink()
    assert (await push(asking))["ok"], "the same content at the same place is the same request"
    arrived.unlink()
    (asking.desk.root / "s.txt").write_text("EVIL")
    assert (await push(asking))["error"]["code"] == "confirm_required"
    assert not arrived.exists()


@pytest.mark.parametrize("named", [{"size": 4, "sha256": sha256(b"seen").hexdigest()}, {"size": 3}, {"size": 5}])
async def test_content_that_is_not_what_the_request_names_is_not_written(asking: Pair, named: dict[str, Any]) -> None:
    """A hostile sender names one content and streams another."""
    call = await sending(asking, b"EVIL", named)
    assert call["error"]["code"] == "confirm_required"
    answer(asking, "yes")
    sent = await sending(asking, b"EVIL", named)
    assert sent["error"]["code"] == "conflict", sent
    assert [path.name for path in asking.laptop.root.iterdir()] == ["a.txt"]


async def test_no_yes_stands_for_content_without_a_digest(asking: Pair) -> None:
    """An older or a hostile sender names no digest: each content is asked for, and the person reads that it is unknown."""
    assert (await sending(asking, b"one", {}))["error"]["code"] == "confirm_required"
    asked = waiting(asking)
    assert "cannot be seen here: of unknown size, without a digest. It may be anything." in asked.text
    assert extents_of(asked) == ()
    for extent in ("same", "shape"):
        with pytest.raises(InvalidRequest):
            asking.laptop.app.services.use(Approvals).answer(asked.id, extent)
    answer(asking, "yes")
    assert (await sending(asking, b"one", {}))["ok"]
    assert (await sending(asking, b"two", {}))["error"]["code"] == "confirm_required"
    assert (asking.laptop.root / "in.txt").read_bytes() == b"one"


async def test_a_shape_of_writes_does_not_cover_content_without_a_digest(asking: Pair) -> None:
    await push(asking)
    answer(asking, "shape")
    assert (await push(asking))["ok"]
    assert (await sending(asking, b"EVIL", {}))["error"]["code"] == "confirm_required"
    assert (asking.laptop.root / "in.txt").read_bytes() == b"seen"


async def test_no_yes_stands_for_what_is_fetched_from_another_computer(tmp_path: Path) -> None:
    async with open_pair(tmp_path) as pair:
        await pair.paired("app")
        scope = pair.desk.app.config.scopes[0]
        object.__setattr__(scope, "policy", scope.policy.model_copy(update={"confirm": "all"}))
        fetched = await pair.desk.call(
            "file.copy", "a.txt", input={"destination": "here.txt", "sourceScope": "laptop/app"}
        )
        assert fetched["error"]["code"] == "confirm_required", fetched
        [asked] = pair.desk.app.services.use(Approvals).waiting()
        assert extents_of(asked) == () and not (pair.desk.root / "here.txt").exists()


def test_a_stream_is_cut_off_at_the_size_that_was_named() -> None:
    taken: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield b"12345678"

    with pytest.raises(Conflict):
        list(Streamed(endless, size=20)())
    assert len(taken) == 3


async def sending(pair: Pair, content: bytes, named: dict[str, Any]) -> dict[str, Any]:
    """Stream these bytes to the laptop by a request that names what it likes."""
    flow = Flow()
    given = {"content": "", "encoding": "stream", **named}
    call = Call("laptop/app", "file.write", "in.txt", given, stream=flow)
    sender = asyncio.ensure_future(asyncio.to_thread(flow.send, lambda start: iter([content[start:]])))
    try:
        reply = await pair.desk.app.dispatcher.call(call, LOCAL)
    finally:
        flow.fail(Conflict("over"))
        await asyncio.wait([sender])
        sender.exception()
    return reply.envelope
