"""file.stat, file.read and file.read_many: windows, lines, digests and limits."""

import base64
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from computer_linker.computer.facets.files import Window
from computer_linker.computer.facets.lines import cut_text, fit_text, whole_characters, wire_size
from computer_linker.computer.local.portable.files.read import Reader, survey
from support.road import LOCAL, Road

pytestmark = pytest.mark.anyio


async def pages(road: Road, target: str, **options: Any) -> list[dict[str, Any]]:
    """Every page of a file, followed by `nextLine`."""
    found = [await road.data("file.read", target, options=options)]
    while found[-1]["nextLine"] is not None:
        found.append(await road.data("file.read", target, options={**options, "startLine": found[-1]["nextLine"]}))
        assert len(found) < 1000
    return found


async def test_a_file_is_read_whole_with_its_digest(road: Road) -> None:
    (road.root / "a.txt").write_bytes(b"one\ntwo\n")
    assert await road.data("file.read", "a.txt") == {
        "path": "a.txt", "content": "one\ntwo\n", "sha256": sha256(b"one\ntwo\n").hexdigest(), "size": 8,
        "truncated": False, "startLine": 1, "nextLine": None, "nextByte": None,
    }  # fmt: skip


async def test_an_empty_file_is_read(road: Road) -> None:
    (road.root / "a").touch()
    data = await road.data("file.read", "a", options={"tailLines": 5})
    assert (data["content"], data["truncated"], data["nextLine"]) == ("", False, None)


@pytest.mark.parametrize(
    ("options", "content", "start", "following"),
    [
        ({"startLine": 2, "lineCount": 1}, "b\n", 2, 3),
        ({"startLine": 3}, "c\nd", 3, None),
        ({"lineCount": 2}, "a\nb\n", 1, 3),
        ({"tailLines": 2}, "c\nd", 3, None),
        ({"tailLines": 99}, "a\nb\nc\nd", 1, None),
        ({"startLine": 99}, "", 99, None),
        ({"maxBytes": 5}, "a\nb\n", 1, 3),
        ({"startLine": 4, "lineCount": 1}, "d", 4, None),
    ],
)
async def test_lines_are_counted_from_one(
    road: Road, options: dict[str, int], content: str, start: int, following: int | None
) -> None:
    (road.root / "a.txt").write_text("a\nb\nc\nd")
    data = await road.data("file.read", "a.txt", options=options)
    assert (data["content"], data["startLine"], data["nextLine"]) == (content, start, following)
    assert data["truncated"] is (following is not None)


@pytest.mark.parametrize(
    "options",
    [
        {"startLine": 0}, {"lineCount": 0}, {"tailLines": -1}, {"maxBytes": 0}, {"startLine": 1, "tailLines": 1},
        {"startByte": 1, "startLine": 1}, {"encoding": "utf16"}, {"startLine": "1"}, {"unknown": 1},
        {"encoding": "base64", "tailLines": 1}, {"maxBytes": 1.5}, {"maxBytes": True},
    ],
)  # fmt: skip
async def test_options_that_make_no_sense_are_refused(road: Road, options: dict[str, Any]) -> None:
    (road.root / "a.txt").write_text("a\n")
    assert await road.code("file.read", "a.txt", options=options) == "invalid_request"


async def test_a_limit_beyond_any_size_is_lowered(road: Road) -> None:
    (road.root / "a.txt").write_text("a\n")
    data = await road.data("file.read", "a.txt", options={"maxBytes": 9223372036854775808})
    assert data["content"] == "a\n"


async def test_pages_put_together_are_the_file(road: Road) -> None:
    text = "".join(f"line {number} äöü€😀\n" for number in range(30_000))
    (road.root / "big.txt").write_text(text)
    found = await pages(road, "big.txt", maxBytes=100_000)
    assert "".join(page["content"] for page in found) == text
    assert {page["sha256"] for page in found} == {sha256(text.encode()).hexdigest()}


async def test_a_line_longer_than_the_limit_is_cut_between_characters_and_can_be_read_on(road: Road) -> None:
    (road.root / "long.txt").write_text("€" * 1000)
    envelope = await road.call("file.read", "long.txt", options={"maxBytes": 100})
    assert envelope["data"]["content"] == "€" * 33
    assert envelope["data"]["truncated"] and envelope["warnings"]
    rest = await road.data(
        "file.read", "long.txt", options={"startByte": envelope["data"]["nextByte"], "maxBytes": 5000}
    )
    assert rest["content"] == "€" * 967


NO_TEXT = {
    "latin-1": "Grüße".encode("latin-1"),
    "utf-16": "\ufeffhello\nworld\n".encode("utf-16-le"),
    "utf-16-be": "\ufeffhello".encode("utf-16-be"),
    "binary": bytes(range(256)),
    "only continuing bytes": b"\x80\x80\x80",
    "a character without its end": "fin€".encode()[:-1],
    "an overlong form": b"a\xc0\xafb",
    "a surrogate": b"a\xed\xa0\x80b",
    "above the last character": b"\xf4\x90\x80\x80",
    "a bad byte late": b"x" * 70_000 + b"\xff",
    "a bad second line": b"one\n\x80two\n",
}


@pytest.mark.parametrize("raw", NO_TEXT.values(), ids=NO_TEXT)
async def test_bytes_that_are_no_text_are_refused_with_the_way_to_read_them(road: Road, raw: bytes) -> None:
    (road.root / "b.bin").write_bytes(raw)
    (road.root / "good.txt").write_text("good")
    whole = {"maxBytes": 100_000}
    envelope = await road.call("file.read", "b.bin", options=whole)
    assert envelope["error"]["code"] == "invalid_request"
    assert "base64" in envelope["error"]["message"] and envelope["error"]["details"]["encoding"] == "base64"
    assert "\ufffd" not in json.dumps(envelope, ensure_ascii=False)
    files = (await road.data("file.read_many", input={"paths": ["b.bin", "good.txt"]}, options=whole))["files"]
    assert files[0]["error"]["code"] == "invalid_request" and files[1]["content"] == "good"
    exact = await road.data("file.read", "b.bin", options={"encoding": "base64", **whole})
    assert base64.b64decode(exact["content"]) == raw


async def test_a_write_cannot_take_over_the_digest_of_bytes_that_were_not_shown(road: Road) -> None:
    raw = "Grüße".encode("latin-1")
    (road.root / "old.txt").write_bytes(raw)
    for options in ({}, {"startLine": 1}, {"tailLines": 5}, {"startByte": 0}, {"startByte": 1}, {"lineCount": 1}):
        assert await road.code("file.read", "old.txt", options=options) == "invalid_request"
    assert (road.root / "old.txt").read_bytes() == raw


@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("size", range(1, 9))
async def test_a_page_that_cuts_a_character_at_its_edge_is_read(road: Road, start: int, size: int) -> None:
    text = "a€🙂é\n"
    (road.root / "t.txt").write_bytes(text.encode())
    envelope = await road.call("file.read", "t.txt", options={"startByte": start, "maxBytes": size})
    assert envelope["ok"], envelope
    content = envelope["data"]["content"]
    assert content.strip("\ufffd") in text
    assert ("\ufffd" in content) == bool(envelope["warnings"])


@pytest.mark.parametrize("raw", [b"ab\xffcd", b"\xff\xffab", b"abc\xff"])
async def test_no_page_hides_a_bad_byte_as_a_cut_character(road: Road, raw: bytes) -> None:
    (road.root / "bad.bin").write_bytes(b"12" + raw + b"34")
    assert (
        await road.code("file.read", "bad.bin", options={"startByte": 2, "maxBytes": len(raw) + 2}) == "invalid_request"
    )


async def test_a_bad_line_is_refused_and_the_others_are_read(road: Road) -> None:
    (road.root / "mixed.txt").write_bytes(b"one\n\x80two\nthree\n")
    assert (await road.data("file.read", "mixed.txt", options={"tailLines": 1}))["content"] == "three\n"
    assert (await road.data("file.read", "mixed.txt", options={"lineCount": 1}))["content"] == "one\n"
    assert await road.code("file.read", "mixed.txt", options={"startLine": 2}) == "invalid_request"


async def test_bytes_that_are_no_text_are_exact_as_base64(road: Road) -> None:
    raw = bytes(range(256))
    (road.root / "b.bin").write_bytes(raw)
    data = await road.data("file.read", "b.bin", options={"encoding": "base64", "maxBytes": 100})
    assert base64.b64decode(data["content"]) == raw[:100] and data["nextByte"] == 100 and data["truncated"]
    rest = await road.data("file.read", "b.bin", options={"encoding": "base64", "startByte": 100})
    assert base64.b64decode(rest["content"]) == raw[100:] and not rest["truncated"]


@pytest.mark.parametrize("unit", ['"\\\n', "\x01", "plain text\n", "€\n"])
async def test_no_reply_is_larger_than_eight_mebibytes_when_wrapped_twice(road: Road, unit: str) -> None:
    text = unit * (10_000_000 // len(unit.encode()))
    (road.root / "big.txt").write_text(text)
    envelope = await road.call("file.read", "big.txt", options={"maxBytes": 8_000_000})
    wrapped = json.dumps(json.dumps(envelope, ensure_ascii=False), ensure_ascii=False)
    assert 1_000_000 < len(wrapped.encode()) <= 8 * 1024 * 1024
    assert envelope["data"]["truncated"]
    content = envelope["data"]["content"].encode()
    assert envelope["data"]["nextByte"] == len(content)
    encoded = await road.call("file.read", "big.txt", options={"maxBytes": 8_000_000, "encoding": "base64"})
    assert len(json.dumps(json.dumps(encoded))) <= 8 * 1024 * 1024


async def test_a_changed_file_is_digested_again(road: Road) -> None:
    path = road.root / "a.txt"
    for text in ("one", "two", "three"):
        path.write_text(text)
        assert (await road.data("file.read", "a.txt"))["sha256"] == sha256(text.encode()).hexdigest()
        assert (await road.data("file.stat", "a.txt", options={"hash": True}))["sha256"] == sha256(
            text.encode()
        ).hexdigest()


async def test_a_huge_sparse_file_costs_neither_time_nor_memory(road: Road) -> None:
    with (road.root / "huge").open("wb") as file:
        file.write(b"start\n")
        file.truncate(100 << 30)
    envelope = await road.call("file.read", "huge", options={"maxBytes": 10})
    assert envelope["data"]["content"] == "start\n" and envelope["data"]["sha256"] is None and envelope["warnings"]
    assert envelope["durationMs"] < 30_000
    assert await road.code("file.read", "huge", options={"tailLines": 1}) == "invalid_request"


async def test_a_file_the_user_may_not_read_says_so_without_a_host_path(road: Road) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every file; run as another user to see this")
    (road.root / "no").write_text("x")
    (road.root / "no").chmod(0)
    envelope = await road.call("file.read", "no")
    assert envelope["error"]["code"] == "os_permission_required"
    assert str(road.root) not in json.dumps(envelope) and "Traceback" not in json.dumps(envelope)


async def test_folders_and_missing_files_are_told_apart(road: Road) -> None:
    (road.root / "d").mkdir()
    (road.root / "f").touch()
    assert await road.code("file.read", "d") == "invalid_request"
    assert await road.code("file.read", "gone") == "not_found"
    assert await road.code("file.read", "f/x") == "not_found"
    assert (await road.data("file.stat", "d"))["type"] == "directory"


async def test_many_files_answer_each_for_itself(road: Road) -> None:
    (road.root / "a").write_text("A")
    (road.root / ".env").write_text("SECRET")
    data = await road.data("file.read_many", input={"paths": ["a", "gone", "../x", ".env"]})
    assert data["files"][0]["content"] == "A"
    assert [file["error"]["code"] for file in data["files"][1:]] == [
        "not_found",
        "path_out_of_scope",
        "permission_denied",
    ]


async def test_many_files_together_keep_to_the_total(road: Road) -> None:
    for number in range(10):
        (road.root / f"f{number}").write_text("0123456789\n" * 10)
    paths = [f"f{number}" for number in range(10)]
    data = await road.data("file.read_many", input={"paths": paths}, options={"maxTotalBytes": 300})
    sizes = [len(file["content"]) for file in data["files"]]
    assert sum(sizes) <= 320 and sizes[0] == 110
    assert data["files"][-1]["truncated"]
    assert await road.code("file.read_many", input={"paths": []}) == "invalid_request"
    assert await road.code("file.read_many", input={"paths": ["a"] * 201}) == "invalid_request"


LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=40)


@given(LINES, st.booleans(), st.integers(1, 50), st.integers(1, 50), st.integers(1, 300))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_windows_agree_with_splitting_the_text(
    tmp_path: Path, lines: list[str], ends: bool, start: int, count: int, limit: int
) -> None:
    raw = "\n".join(lines).encode() + (b"\n" if ends else b"")
    path = tmp_path / "f"
    path.write_bytes(raw)
    whole = [part + b"\n" for part in raw.split(b"\n")[:-1]] + ([last] if (last := raw.rpartition(b"\n")[2]) else [])
    descriptor = os.open(path, os.O_RDONLY)
    try:
        reader = Reader(descriptor, len(raw), survey(descriptor, len(raw)))
        piece = reader.piece(Window(10_000, start_line=start, line_count=count), 1)
        assert piece.content == b"".join(whole[start - 1 : start - 1 + count])
        tail = reader.piece(Window(10_000, tail_lines=count), 1)
        assert tail.content == b"".join(whole[-count:])
        at, pieces = 0, []
        while True:
            part = reader.piece(Window(max(limit, 4), start_byte=at), 1)
            part.content.decode()
            pieces.append(part.content)
            if part.next_byte is None:
                break
            at = part.next_byte
        assert b"".join(pieces) == raw
    finally:
        os.close(descriptor)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 200))
def test_a_cut_never_splits_a_character(text: str, limit: int) -> None:
    data = text.encode()
    cut = cut_text(data, limit)
    assert data.startswith(cut) and len(cut) <= max(limit, 0)
    cut.decode()
    whole_characters(data[:limit]).decode()


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(20, 200))
def test_the_wire_size_is_exactly_what_json_makes_of_it_twice(text: str, room: int) -> None:
    twice = json.dumps(json.dumps(text, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1]
    assert wire_size(text.encode()) == len(twice.encode())
    assert wire_size(fit_text(text.encode(), room)) <= room or len(fit_text(text.encode(), room)) <= 4


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_a_picture_is_shown_beside_the_answer(road: Road) -> None:
    (road.root / "logo.png").write_bytes(PIXEL)
    refused = (await road.call("file.read", "logo.png"))["error"]
    assert refused["code"] == "invalid_request" and "`encoding` `image`" in refused["message"]
    call = {"scope": "app", "op": "file.read", "target": "logo.png", "options": {"encoding": "image"}}
    reply = await road.app.dispatcher.call_wire(call, LOCAL)
    assert [(one.mime, one.data) for one in reply.attachments] == [("image/png", PIXEL)]
    data = reply.envelope["data"]
    assert (data.content, data.size, data.sha256) == ("", len(PIXEL), sha256(PIXEL).hexdigest())


async def test_what_is_no_picture_is_not_shown_and_too_large_a_file_is_made_to_fit(road: Road) -> None:
    (road.root / "a.png").write_text("text\n")
    (road.root / "large.png").write_bytes(PIXEL + bytes(5_000_000))
    call = {"scope": "app", "op": "file.read", "target": "a.png", "options": {"encoding": "image"}}
    reply = await road.app.dispatcher.call_wire(call, LOCAL)
    assert reply.envelope["error"]["code"] == "invalid_request" and reply.attachments == []
    reply = await road.app.dispatcher.call_wire({**call, "target": "large.png"}, LOCAL)
    assert len(reply.attachments[0].data) < 1000
