"""Sealed messages by property: no change of any byte passes, nothing strange gets further than a refusal, acts are done once."""

import asyncio
import tracemalloc
from pathlib import Path

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from computer_linker.errors import Conflict, InvalidRequest, LimitExceeded, LinkError, PermissionDenied
from computer_linker.fleet import seal
from computer_linker.fleet.messages import Parts, split
from computer_linker.fleet.seal import Ledger, Signer, opened
from computer_linker.model.envelope import Reply
from computer_linker.transports.peer.identity import own_identity


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    home: Path = tmp_path_factory.mktemp("home")
    return Signer(own_identity(home, "machine"))


def test_what_was_sealed_opens_as_it_was(signer: Signer) -> None:
    body = {"text": "x", "bytes": b"\x00", "list": [1, None, True], "map": {"a": 1.5}}
    message = opened(signer.sealed("call", body), lambda key: key == signer.fingerprint)
    assert (message.kind, message.signer, message.body) == ("call", signer.fingerprint, body)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_no_changed_byte_passes(signer: Signer, place: float, change: int) -> None:
    raw = bytearray(signer.sealed("call", {"key": "a" * 16, "call": {"op": "file.write"}}))
    raw[int(place * len(raw))] ^= change
    with pytest.raises(LinkError):
        opened(bytes(raw), lambda key: key == signer.fingerprint)


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=300))
def test_nothing_strange_gets_further_than_a_refusal(raw: bytes) -> None:
    with pytest.raises(LinkError):
        opened(raw, lambda key: True)


@settings(max_examples=100, deadline=None)
@given(size=st.integers(0, 20_000), largest=st.integers(3100, 9000))
def test_parts_come_together_again(size: int, largest: int) -> None:
    raw = bytes(index % 251 for index in range(size))
    pieces, parts = split(raw, largest), Parts()
    assert [parts.add(piece) for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert parts.add(pieces[-1]) == raw
    assert all(len(piece) <= largest for piece in pieces)


def test_parts_out_of_order_are_refused_and_begun_again() -> None:
    pieces, parts = split(b"x" * 5000, 4000), Parts()
    for wrong in ([pieces[1]], [pieces[0], pieces[2]], [b""], [b"\0" * 7], [b"\0\0\0\0\0\0\0\0"]):
        with pytest.raises(InvalidRequest):
            for piece in wrong:
                parts.add(piece)
    assert [parts.add(piece) for piece in pieces][-1] == b"x" * 5000


@pytest.mark.anyio
async def test_an_act_is_done_once_and_its_answer_is_given_again() -> None:
    ledger, done = Ledger(), []

    async def act() -> Reply:
        done.append(1)
        return Reply({"ok": True})

    answers = [await ledger.act("key", 9e9, act) for _ in range(3)]
    assert (len(done), answers[0] is answers[2]) == (1, True)
    ledger._acts["key"] = (9e9, 0.0, ledger._acts["key"][2])
    ledger.spend("nonce", 9e9)
    with pytest.raises(Conflict):
        ledger.act("key", 9e9, act)
    with pytest.raises(PermissionDenied):
        ledger.spend("nonce", 9e9)
    assert len(done) == 1


@pytest.mark.anyio
async def test_no_more_acts_than_a_machine_can_carry() -> None:
    ledger, go = Ledger(), asyncio.Event()

    async def act() -> Reply:
        await go.wait()
        return Reply({"ok": True})

    for number in range(64):
        ledger.act(f"key{number}", 9e9, act)
    with pytest.raises(LimitExceeded):
        ledger.act("one too many", 9e9, act)
    await ledger.aclose()
    assert all(task is None or task.done() for _, _, task in ledger._acts.values())


@pytest.mark.parametrize("empty", [b"\x80", b"\x90"])
@pytest.mark.parametrize("signed", [False, True])
def test_a_message_of_countless_parts_is_refused_before_it_fills_the_memory(
    signer: Signer, empty: bytes, signed: bool
) -> None:
    # A list of lists of a hundred thousand each: a byte each on the wire, sixty in memory.
    many = b"\xdc\x00\x78" + (b"\xdd" + (99_999).to_bytes(4, "big") + empty * 99_999) * 120
    raw = many
    if signed:
        body = b"\x81\xa1x" + many
        digest = seal._digest("answer", body)
        sealed = [seal.VERSION, "answer", signer._certificate, body, signer._key.sign(digest, seal._ALGORITHM)]
        raw = msgpack.packb(sealed, use_bin_type=True)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequest):
            opened(raw, lambda key: True)
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


def test_an_answer_of_countless_tiny_parts_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        Parts().add((0).to_bytes(4, "big") + (1_000_000).to_bytes(4, "big") + b"x")
