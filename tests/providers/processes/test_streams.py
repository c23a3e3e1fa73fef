"""Bounded keeping of output: the start, the end, and no half characters."""

from hypothesis import given, settings
from hypothesis import strategies as st

from computer_linker.providers.processes.streams import HeadTail, whole_characters


@settings(deadline=None)
@given(
    text=st.text(max_size=200), sizes=st.lists(st.integers(1, 50), min_size=1, max_size=5), limit=st.integers(8, 400)
)
def test_short_output_is_whole_and_long_output_keeps_its_ends(text: str, sizes: list[int], limit: int) -> None:
    raw = text.encode("utf-8", "replace")
    keep = HeadTail(limit)
    at, turn = 0, 0
    while at < len(raw):
        size = sizes[turn % len(sizes)]
        keep.feed(memoryview(raw)[at : at + size])
        at, turn = at + size, turn + 1
    shown, cut = keep.text(limit)
    assert keep.total == len(raw) and cut is (len(raw) > limit)
    if not cut:
        assert shown == raw.decode()
    else:
        head, _, rest = shown.partition("\n[… ")
        tail = rest.partition(" bytes left out …]\n")[2]
        assert raw.decode().startswith(head) and raw.decode().endswith(tail)
        assert len(head.encode()) + len(tail.encode()) <= limit
    assert len(keep._head) + len(keep._tail) <= 2 * limit + 50


@given(st.text(max_size=20), st.integers(0, 60))
def test_a_cut_never_splits_a_character(text: str, at: int) -> None:
    raw = text.encode("utf-8", "replace")[:at]
    kept = raw[: whole_characters(raw)]
    kept.decode("utf-8")
    assert len(raw) - len(kept) <= 3
