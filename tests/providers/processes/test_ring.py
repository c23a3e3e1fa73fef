"""The ring keeps the newest output, and its cursors neither skip nor repeat."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from computer_linker.providers.processes.ring import Ring, Stream

SAME_FOLDER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=150
)
WRITES = st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.text(max_size=12)), max_size=40)


@SAME_FOLDER
@given(writes=WRITES, piece=st.integers(1, 9))
def test_reading_in_any_pieces_gives_what_was_written(
    tmp_path: Path, writes: list[tuple[Stream, str]], piece: int
) -> None:
    ring = Ring(tmp_path, capacity=4096)
    wanted = {"stdout": "", "stderr": ""}
    for stream, text in writes:
        raw = text.encode("utf-8", "replace")
        wanted[stream] += raw.decode()
        for at in range(len(raw)):
            ring.write(stream, raw[at : at + 1])
    ring.finish()
    got = {"stdout": "", "stderr": ""}
    cursor = 0
    while cursor < ring.end:
        chunks, after, dropped = ring.read(cursor, piece)
        assert after > cursor and dropped == 0
        for chunk in chunks:
            got[chunk["stream"]] += chunk["text"]
        cursor = after
    ring.close()
    assert got == wanted


@SAME_FOLDER
@given(sizes=st.lists(st.integers(0, 300), max_size=30))
def test_the_oldest_makes_room_and_is_counted(tmp_path: Path, sizes: list[int]) -> None:
    ring = Ring(tmp_path, capacity=256)
    whole = b""
    for number, size in enumerate(sizes):
        data = bytes([97 + number % 26]) * size
        whole += data
        ring.write("stdout", data)
    chunks, cursor, dropped = ring.read(0, 10_000)
    text = "".join(chunk["text"] for chunk in chunks)
    assert text == whole[dropped:].decode() and cursor == len(whole) and len(text) <= 256
    ring.close()


def test_one_stream_alone_can_be_read(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.write("stdout", b"a")
    ring.write("stderr", b"problem")
    ring.write("stdout", b"b")
    assert ring.read(0, 100, "stderr") == ([{"stream": "stderr", "text": "problem"}], 9, 0)
    assert ring.read(0, 100, "stdout") == ([{"stream": "stdout", "text": "ab"}], 9, 0)
    ring.close()


def test_nothing_of_it_has_a_name_on_disk(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.write("stdout", b"secret")
    assert list(tmp_path.iterdir()) == []
    ring.close()
