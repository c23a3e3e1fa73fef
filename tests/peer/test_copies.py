"""file.copy between two computers: whole or absent, whatever happens on the way."""

import os
from pathlib import Path

import pytest

from support.pair import Pair

pytestmark = pytest.mark.anyio
SIZE = 5_000_000 + 17


async def test_a_file_is_sent_to_another_computer(pair: Pair) -> None:
    content = os.urandom(SIZE)
    (pair.desk.root / "big.bin").write_bytes(content)
    sent = await pair.desk.call(
        "file.copy", "big.bin", input={"destination": "in/big.bin", "destinationScope": "laptop/app"},
        options={"createParents": True},
    )  # fmt: skip
    assert (sent["ok"], sent.get("effect")) == (True, "confirmed"), sent
    assert sent["data"] == {"from": "big.bin", "to": "laptop/app:in/big.bin"}
    assert (pair.laptop.root / "in" / "big.bin").read_bytes() == content


async def test_a_file_is_fetched_from_another_computer(pair: Pair) -> None:
    content = os.urandom(SIZE)
    (pair.laptop.root / "big.bin").write_bytes(content)
    fetched = await pair.desk.call(
        "file.copy", "big.bin", input={"destination": "here.bin", "sourceScope": "laptop/app"}
    )
    assert (fetched["ok"], fetched.get("effect")) == (True, "confirmed"), fetched
    assert (pair.desk.root / "here.bin").read_bytes() == content


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1])
async def test_any_length_arrives_exactly(pair: Pair, size: int) -> None:
    content = os.urandom(size)
    (pair.desk.root / "a.bin").write_bytes(content)
    assert (await _push(pair, "a.bin", "b.bin"))["ok"]
    assert (pair.laptop.root / "b.bin").read_bytes() == content
    back = await pair.desk.call("file.copy", "b.bin", input={"destination": "c.bin", "sourceScope": "laptop/app"})
    assert back["ok"], back
    assert (pair.desk.root / "c.bin").read_bytes() == content


async def test_a_taken_name_is_kept_unless_overwriting_was_asked_for(pair: Pair) -> None:
    (pair.desk.root / "new.txt").write_text("new")
    assert (await _push(pair, "new.txt", "a.txt"))["error"]["code"] == "already_exists"
    assert (pair.laptop.root / "a.txt").read_text() == "on the laptop"
    sent = await pair.desk.call(
        "file.copy", "new.txt", input={"destination": "a.txt", "destinationScope": "laptop/app"},
        options={"overwrite": True},
    )  # fmt: skip
    assert sent["ok"], sent
    assert (pair.laptop.root / "a.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("target", "field", "scope", "destination", "codes"),
    [
        ("gone", "sourceScope", "laptop/app", "x", {"not_found"}),
        ("../x", "sourceScope", "laptop/app", "x", {"path_out_of_scope"}),
        (".env", "sourceScope", "laptop/app", "x", {"permission_denied"}),
        ("a.txt", "sourceScope", "laptop/app", "../x", {"path_out_of_scope"}),
        ("a.txt", "sourceScope", "laptop/other", "x", {"unknown_scope"}),
        ("a.txt", "sourceScope", "nobody/app", "x", {"unknown_scope"}),
        ("a.txt", "sourceScope", "laptop", "x", {"invalid_request"}),
        ("mine", "destinationScope", "laptop/app", ".git/hooks/pre-commit", {"permission_denied"}),
        ("mine", "destinationScope", "laptop/app", "../../x", {"path_out_of_scope"}),
        ("gone", "destinationScope", "laptop/app", "x", {"not_found"}),
        ("folder", "destinationScope", "laptop/app", "x", {"invalid_request"}),
        ("mine", "destinationScope", "nobody/app", "x", {"unknown_scope"}),
    ],
)
async def test_what_either_computer_refuses_leaves_nothing_on_either(
    pair: Pair, target: str, field: str, scope: str, destination: str, codes: set[str]
) -> None:
    (pair.desk.root / "mine").write_text("mine")
    (pair.desk.root / "folder").mkdir()
    (pair.laptop.root / ".env").write_text("SECRET=1")
    before = _names(pair)
    envelope = await pair.desk.call("file.copy", target, input={"destination": destination, field: scope})
    assert envelope["ok"] is False
    assert envelope["error"]["code"] in codes, envelope
    assert _names(pair) == before


async def test_a_peer_that_may_only_read_is_not_sent_anything(reading_pair: Pair) -> None:
    (reading_pair.desk.root / "mine").write_text("mine")
    assert (await _push(reading_pair, "mine", "theirs"))["error"]["code"] == "permission_denied"
    assert not (reading_pair.laptop.root / "theirs").exists()


async def test_a_client_cannot_claim_a_stream_that_is_not_there(pair: Pair) -> None:
    for scope in ("app", "laptop/app"):
        made = await pair.desk.call("file.create", "empty", scope=scope, input={"content": "", "encoding": "stream"})
        assert made["error"]["code"] == "invalid_request"
        read = await pair.desk.call("file.read", "a.txt", scope=scope, options={"encoding": "stream"})
        assert read["error"]["code"] in ("invalid_request", "not_found")
    assert not (pair.laptop.root / "empty").exists()
    assert not (pair.desk.root / "empty").exists()


async def _push(pair: Pair, target: str, destination: str) -> dict:  # type: ignore[type-arg]  # an envelope
    return await pair.desk.call(
        "file.copy", target, input={"destination": destination, "destinationScope": "laptop/app"}
    )


def _names(pair: Pair) -> list[Path]:
    return sorted([*pair.desk.root.rglob("*"), *pair.laptop.root.rglob("*")])
