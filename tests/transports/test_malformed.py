"""Messages that are none: each gets an error or nothing, never an effect, and the next honest one is answered."""

import contextlib
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from support.lines import Lines, stream
from support.service import Service, modern_headers, rpc

HONEST = {"name": "computer_operation", "arguments": {"scope": "app", "op": "file.list", "target": "."}}
WRITE = {
    "name": "computer_operation",
    "arguments": {"scope": "app", "op": "file.write", "target": "mark", "input": {"content": "x"}},
}
METHODS = [
    "tools/list", "tools/call", "resources/read", "initialize", "x", "notifications/x", "notifications/cancelled",
    "server/discover", "ping", "logging/setLevel",
]  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**63, 2**70, "", "x", "\u0000", "\U0001f600" * 20, [], {}, [[]], [None], {"": ""},
    {"__proto__": {}}, "../../etc/passwd", "tools/call", "a" * 5000, {"type": "object"}, [{}] * 30, "\u202e",
]  # fmt: skip


@pytest.fixture
def lines(open_service: Service) -> Iterator[Lines]:
    with stream(open_service.home) as opened:
        yield opened


def is_alive(lines: Lines) -> None:
    answer = lines.ask("tools/call", HONEST)
    assert answer["result"]["isError"] is False


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{", -32700), (b"nonsense", -32700), (b"\xff\xfe", -32700), (b"{'a':1}", -32700), (b'{"a":1}}', -32700),
        (b"[]", -32600), (b"null", -32600), (b"7", -32600), (b'"x"', -32600), (b"{}", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32600),
        (b"[" * 100_000, -32600),
    ],
)  # fmt: skip
def test_a_broken_message_is_named_as_such_and_the_next_is_answered(raw: bytes, code: int, lines: Lines) -> None:
    lines.send_raw(raw + b"\n")
    answer = lines.receive()
    assert answer is not None
    assert answer["error"]["code"] == code, answer
    assert answer.get("id") is None
    is_alive(lines)


UNREADABLE = {
    "a lone surrogate": b'{"a":"\\udfff"}',
    "no number": b"[NaN]",
    "infinity": b"-Infinity",
    "a doubled key": b'{"a":1,"a":2}',
    "a doubled id inside": b'{"id":3,"id":4}',
    "too large a number": b"1e999",
    "too many digits": b"9" * 5000,
    "too deep": b"[" * 70 + b'{"id":3}' + b"]" * 70,
    "too many parts": b"[" + b'{"id":3},' * 100_001 + b"1]",
}


@pytest.mark.parametrize("params", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("handle", [71, "seventy-one", '"\\}]{[:,', "id"])
@pytest.mark.parametrize("order", ["first", "last"])
def test_a_request_that_cannot_be_read_is_answered_under_its_own_id(
    params: bytes, handle: str | int, order: str, lines: Lines, open_service: Service
) -> None:
    own = b'"id":' + json.dumps(handle).encode()
    rest = b'"jsonrpc":"2.0","method":"tools/call","params":' + params
    raw = b"{" + b",".join([own, rest] if order == "first" else [rest, own]) + b"}"
    lines.send_raw(raw + b"\n")
    answer = lines.answer_to(handle)
    assert answer["error"]["code"] == -32600
    is_alive(lines)
    with contextlib.closing(open_service.http()) as http:
        status, body = http.send("POST", "/mcp", raw)
        assert status == 400 and json.loads(body)["id"] == handle


@pytest.mark.parametrize("method", [*METHODS, 7, [], {}])
@pytest.mark.parametrize("params", [[], "x", 7, True, [[]]])
def test_a_request_of_a_wrong_shape_is_answered_under_its_own_id(method: Any, params: Any, lines: Lines) -> None:
    lines.send({"jsonrpc": "2.0", "id": 60, "method": method, "params": params})
    lines.send(rpc(61, "ping"))
    assert lines.answer_to(60)["error"]["code"] in (-32600, -32602)
    assert lines.answer_to(61)["result"] == {}


@pytest.mark.parametrize("params", [[], "", 0, False, [[]], "x"])
def test_parameters_of_a_wrong_shape_over_http_are_refused(params: Any, open_service: Service) -> None:
    with contextlib.closing(open_service.http()) as http:
        http.initialize()
        for method in ("tools/list", "ping", "initialize", "tools/call"):
            message = {"jsonrpc": "2.0", "id": 8, "method": method, "params": params}
            assert http.send("POST", "/mcp", message, http.session_headers())[0] in (200, 400), method


@pytest.mark.parametrize("handle", [None, [], {}, 1.5, True, "absent", 99])
def test_cancelling_what_is_not_there_does_nothing(handle: Any, lines: Lines) -> None:
    lines.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": handle}})
    lines.send({"jsonrpc": "2.0", "id": handle, "result": {}})
    is_alive(lines)


@pytest.mark.parametrize("end", [b"\r\n", b"\n\n\n", b" \n", b"\t\n"])
def test_other_line_ends_and_empty_lines_are_taken(end: bytes, lines: Lines) -> None:
    lines.send_raw(end + json.dumps(rpc(50, "ping")).encode() + end)
    assert lines.answer_to(50)["result"] == {}


def test_a_message_in_single_bytes_is_put_together(lines: Lines) -> None:
    for byte in json.dumps(rpc(51, "tools/call", HONEST)).encode() + b"\n":
        lines.send_raw(bytes([byte]))
    assert lines.answer_to(51)["result"]["isError"] is False


def test_an_id_still_under_way_is_not_taken_twice(lines: Lines, open_service: Service) -> None:
    message = json.dumps(rpc(52, "tools/call", WRITE)).encode() + b"\n"
    lines.send_raw(message + message)
    answers = [lines.answer_to(52), lines.answer_to(52)]
    assert sum("result" in answer for answer in answers) >= 1
    (open_service.root / "mark").unlink()
    is_alive(lines)


def test_a_line_over_the_limit_ends_the_connection_alone(open_service: Service) -> None:
    with stream(open_service.home) as lines, stream(open_service.home) as neighbour:
        chunk = b"x" * (1 << 20)
        try:
            for _ in range(20):
                lines.send_raw(chunk)
        except BrokenPipeError:
            pass
        is_alive(neighbour)


def mutated(rng: random.Random) -> bytes:
    """A request to write a file, with something wrong: no form of it may be run as it stands."""
    message: dict[str, Any] = rpc(rng.randrange(1000, 9999), "tools/call", json.loads(json.dumps(WRITE)))
    match rng.randrange(6):
        case 0:
            message["params"]["arguments"][rng.choice(["scope", "op", "target", "input", "options", "extra"])] = (
                rng.choice(ODD)
            )
        case 1:
            message["params"][rng.choice(["name", "arguments"])] = rng.choice(ODD)
        case 2:
            message[rng.choice(["method", "params", "jsonrpc", "id"])] = rng.choice(ODD)
        case 3:
            message["params"]["arguments"]["input"] = {rng.choice(["content", "contents", "encoding"]): rng.choice(ODD)}
        case 4:
            message["method"] = rng.choice(METHODS)
            message["params"] = rng.choice(ODD)
        case _:
            raw = bytearray(json.dumps(message).encode())
            for _ in range(rng.randrange(1, 4)):
                raw[rng.randrange(len(raw))] = rng.choice(b'{}[]":,\\0x\xff\x00')
            return bytes(raw).replace(b"\n", b" ")
    return json.dumps(message).encode()


def fuzz(service: Service, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    before = service.memory_mb()
    for _ in range(rounds):
        with stream(service.home) as lines:
            for _ in range(40):
                lines.send_raw(mutated(rng) + b"\n")
            lines.send(rpc("the end", "tools/list"))
            lines.answer_to("the end")
            for kept in lines.kept():
                assert "result" in kept or "error" in kept or "method" in kept
    assert service.memory_mb() - before < 64
    # A target that was changed into another plain name is an honest request; outside the root nothing is.
    assert {entry.name for entry in service.root.parent.iterdir()} == {"home", "root"}
    assert all(entry.is_file() and not entry.is_symlink() for entry in service.root.iterdir())


def test_short_fuzz_over_the_socket(open_service: Service) -> None:
    fuzz(open_service, seed=20261116, rounds=10)


@pytest.mark.soak
def test_long_fuzz_over_the_socket(open_service: Service) -> None:
    for seed in range(200):
        fuzz(open_service, seed=seed, rounds=20)


def fuzz_http(service: Service, seed: int, count: int) -> None:
    rng = random.Random(seed)
    link = service.http()
    link.initialize()
    for _ in range(count):
        headers = link.session_headers() if rng.random() < 0.7 else modern_headers("tools/call")
        sent = mutated(rng)
        status, answer = link.send("POST", rng.choice(["/mcp", "/mcp", "/api/v1/control"]), sent, headers)
        assert status < 500, (sent, answer, service.log[-3000:])
    assert link.legacy("tools/list")["result"]["tools"]
    link.close()


def test_short_fuzz_over_http(open_service: Service) -> None:
    fuzz_http(open_service, seed=1, count=300)


@pytest.mark.soak
def test_long_fuzz_over_http(open_service: Service) -> None:
    for seed in range(100):
        fuzz_http(open_service, seed=seed, count=1000)
