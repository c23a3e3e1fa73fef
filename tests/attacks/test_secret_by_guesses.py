"""Guesses at a stored secret: what is held back of a stream shows to nobody whether one of them is right."""

from collections.abc import Callable

import pytest

from computer_linker.providers.processes.streams import MaskedSink
from computer_linker.vault.forms import forms_of
from computer_linker.vault.mask import Mask, MaskedStream, Replaced
from support.canary import CANARY
from support.waiting import until

_MASK = Mask([Replaced(CANARY, "[secret token]")])
_STARTS = [form.content for form in forms_of(CANARY, is_deep=True)]


def _wrong(start: bytes) -> bytes:
    """A guess that is wrong in its last sign alone."""
    return start[:-1] + bytes([start[-1] ^ 1])


@pytest.mark.parametrize("length", [1, 2, 3, 8, 15])
def test_a_right_guess_is_held_as_a_wrong_one_is(length: int) -> None:
    for start in {content[:length] for content in _STARTS}:
        seen: list[list[int]] = []
        for guess in (start, _wrong(start)):
            stream = MaskedStream(_MASK)
            passed = [
                stream.feed(b"|"),
                stream.feed(guess),
                stream.tick(),
                stream.tick(),
                stream.feed(b"|"),
                stream.finish(),
            ]
            assert b"".join(passed) == b"|" + guess + b"|"
            seen.append([len(each) for each in passed])
        assert seen[0] == seen[1], start


def test_no_more_than_the_window_is_held() -> None:
    stream = MaskedStream(_MASK)
    text = b"x" * (3 * _MASK.window)
    assert len(stream.feed(text)) == len(text) - _MASK.window
    assert len(stream.finish()) == _MASK.window


def test_a_secret_in_two_pieces_is_masked_also_across_one_tick() -> None:
    for at in range(1, len(CANARY)):
        stream = MaskedStream(_MASK)
        first = stream.feed(CANARY[:at].encode()) + stream.tick()
        assert first + stream.feed(CANARY[at:].encode()) + stream.tick() + stream.tick() == b"[secret token]"


@pytest.mark.anyio
@pytest.mark.parametrize("guess", [lambda: CANARY[:9], lambda: _wrong(CANARY[:9].encode()).decode()])
async def test_a_process_shows_each_guess_in_the_same_pieces(guess: Callable[[], str]) -> None:
    pieces: list[bytes] = []
    sink = MaskedSink(lambda data: pieces.append(bytes(data)), _MASK)
    sink.feed(memoryview(b"|" + guess().encode()))
    assert pieces == []
    await until(lambda: pieces)
    assert pieces == [b"|" + guess().encode()]
