"""JSON from outside is read strictly."""

import json
import time

import pytest

from computer_linker.errors import InvalidRequest
from computer_linker.model.json_text import MAX_DEPTH, MAX_PARTS, NotJson, read_json


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"x":{"a":1,"b":2,"a":1}}',
        b"[NaN]",
        b"[Infinity]",
        b"[-Infinity]",
        b'"\\ud800"',
        b'{"\\udc00":1}',
        b'["\\ud83d x"]',
        b"[" * 70 + b"]" * 70,
        b'{"a":' * 70 + b"1" + b"}" * 70,
        b"9" * 65,
        b"[1e999]",
        b"-" + b"9" * 5000,
        b"[" + b"1," * MAX_PARTS + b"1]",
        b'[""' + b',""' * MAX_PARTS + b"]",
        b"[" + b"{}," * MAX_PARTS + b"{}]",
    ],
)
def test_what_has_no_one_meaning_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_json(raw)
    assert not isinstance(refused.value, NotJson)


@pytest.mark.parametrize("raw", [b"", b"{", b"{'a':1}", b"\xff\xfe", b'{"a":1}{"b":2}', b'{"a":\n', b"01", b'"\x01"'])
def test_what_is_no_json_is_told_apart(raw: bytes) -> None:
    with pytest.raises(NotJson):
        read_json(raw)


def test_a_paired_surrogate_and_brackets_in_strings_are_fine() -> None:
    assert read_json(b'"\\ud83d\\ude00"') == "\U0001f600"
    assert read_json(b'"' + b"[" * 500 + b'"') == "[" * 500


def test_brackets_and_commas_behind_escaped_quotes_and_backslashes_are_text() -> None:
    text = '\\ "[{,' * MAX_PARTS
    assert read_json(json.dumps({"a": text, "b": [text]})) == {"a": text, "b": [text]}


def test_an_open_string_of_escaped_quotes_takes_no_longer_than_it_is_long() -> None:
    started = time.process_time()
    with pytest.raises(InvalidRequest):
        read_json(b"[" * (MAX_DEPTH + 1) + b'"' + b'\\"' * 1_000_000)
    assert time.process_time() - started < 2


def test_the_deepest_allowed_nesting_is_read() -> None:
    value = read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH - 1):
        value = value[0]
    assert value == []
