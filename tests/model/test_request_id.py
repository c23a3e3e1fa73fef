"""The id of a message that cannot be read: its own and no other's, or none."""

import json
import random
import time
from typing import Any

import pytest

from computer_linker.errors import InvalidRequest
from computer_linker.model.json_text import read_json
from computer_linker.model.request_id import first_id_of, id_of, request_id_of

MANY = b"[" + b"1," * 100_000 + b"1]"
BAD = [b'"\\ud800"', b"NaN", b'{"a":1,"a":2}', b"[" * 65 + b"]" * 65, b"1e999", b"9" * 70, MANY]


def refused(raw: bytes) -> str | int | None:
    """The id, of a message that is really refused."""
    with pytest.raises(InvalidRequest):
        read_json(raw)
    return request_id_of(raw)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad[:12].decode())
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b"7", 7), (b"-7", -7), (b"0", 0), (b'"x"', "x"), (b'""', ""), (b'"7"', "7"), (b'"\\u0069d"', "id"),
        (b'"\\"}],"', '"}],'), ('"€🙂"'.encode(), "€🙂"), (b'"\\ud83d\\ude42"', "🙂"), (b'"' + b"x" * 256 + b'"', "x" * 256),
        (b"null", None), (b"true", None), (b"1.5", None), (b"[1]", None), (b'{"id":1}', None), (b"1e3", None),
        (b'"\\ud800"', None), (b'"' + b"x" * 257 + b'"', None), (b"9" * 19, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["first", "middle", "last"])
def test_the_id_is_found_wherever_it_stands(bad: bytes, written: bytes, meant: Any, order: str) -> None:
    own, rest = b'"id" : ' + written, [b'"method":"x"', b'"params":' + bad]
    members = {"first": [own, *rest], "middle": [rest[0], own, rest[1]], "last": [*rest, own]}[order]
    assert refused(b" {" + b",".join(members) + b"} ") == meant


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad[:12].decode())
@pytest.mark.parametrize(
    "raw",
    [
        b'{"method":"x","params":{"id":5,"bad":%b}}',
        b'{"method":"x","params":{"bad":%b,"id":5}}',
        b'{"method":"x","params":[{"bad":%b},{"id":5}]}',
        b'{"method":"x","params":{"a":"\\"id\\":5","bad":%b,"b":",\\"id\\":5"}}',
        b'{"method":"x","params":%b,"a":",\\"id\\":5}"}',
        b'{"method":"x","params":%b,"x,\\"id":5}',
        b'{"method":"x","params":%b,"ID":5,"id ":6,"i\\u0064d":7}',
        b'{"id":5,"method":"x","params":%b,"id":6}',
        b'{"id":5,"params":%b,"method":"x","\\u0069d":6}',
        b'{"id":5,"params":%b}',
        b'{"id":5,"result":%b}',
        b'{"id":5,"method":"x","result":%b}',
        b'{"id":5,"method":"x","error":{"a":%b}}',
        b'[{"id":5,"method":"x","params":%b}]',
        b'[{"id":5,"method":"x","params":%b},{"id":6,"method":"x"}]',
        b'"id":5,"method":"x","params":%b',
        b"%b",
    ],
)
def test_nothing_else_is_taken_for_the_id(raw: bytes, bad: bytes) -> None:
    assert request_id_of(raw.replace(b"%b", bad)) is None


@pytest.mark.parametrize("tail", [b',"id":5}', b'},"id":5}', b']],"id":5}', b'}{"id":5}', b'}],"a":{"id":5}', b""])
def test_a_message_out_of_balance_has_no_last_id(tail: bytes) -> None:
    raw = b'{"method":"x","params":{"a":[{"b":' + b"[" + b"1," * 100_001 + b"1]" + tail
    assert request_id_of(raw) is None


def test_a_message_whose_end_has_not_come_is_known_by_its_first_id() -> None:
    assert first_id_of(b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"content":"' + b"x" * 100_000) == 5
    assert first_id_of(b'{"jsonrpc":"2.0","method":"x","params":{"id":5,"content":"' + b"x" * 100_000) is None


def test_random_messages_never_give_another_id() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        pieces = [chance.choice([b'"id"', b":", b",", b"{", b"}", b"[", b"]", b"5", b'"x"', b'"method"', b"\\", b'"', b" "])
                  for _ in range(chance.randrange(40))]  # fmt: skip
        raw = b"{" + b"".join(pieces) + b"}"
        try:
            meant = id_of(json.loads(raw))
        except ValueError:
            meant = None
        got = request_id_of(raw)
        assert got is None or got == meant, raw


@pytest.mark.parametrize(
    "raw",
    [
        b'{"method":"x","params":' + b"[" * (16 << 20),
        b'{"method":"x","params":[' + b"1," * (8 << 20) + b'1],"id":7}',
        b'{"method":"x","params":[' + b'"",' * (5 << 20) + b'1],"id":7}',
        b'{"method":"x","params":"' + b'\\"' * (8 << 20) + b'","id":7}',
        b'{"method":"x",' + b" " * (16 << 20) + b'"id":7}',
        b'{"method":"x",' + b'"id":1,' * (2 << 20) + b'"id":7}',
    ],
    ids=["brackets", "parts", "strings", "escapes", "spaces", "ids"],
)
def test_the_largest_message_is_looked_at_in_bounded_time(raw: bytes) -> None:
    began = time.process_time()
    request_id_of(raw)
    assert time.process_time() - began < 3
