"""What is refused before anybody asks who calls: foreign hosts and origins, doubled headers, other bodies than plain JSON."""

import http.client
import json
from typing import Any

import pytest

from support.service import META, TOKEN, Service, modern_headers, raw_http, rpc

LIST = rpc(1, "tools/list", {"_meta": META})
OWNER = f"Authorization: Bearer {TOKEN}\r\n"


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def request(
    service: Service, *, host: str | None = None, extra: str = "", path: str = "/mcp", body: bytes | None = None
) -> bytes:
    """The answer to a complete request whose every header is named here."""
    content = json.dumps(LIST).encode() if body is None else body
    place = f"127.0.0.1:{service.port}" if host is None else host.replace("$PORT", str(service.port))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        f"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
        f"Connection: close\r\n{extra}\r\n"
    )
    return raw_http(service.port, head.encode("latin-1") + content)


def test_an_honest_request_passes(guarded: Service) -> None:
    for host in ("127.0.0.1:$PORT", "localhost:$PORT", "[::1]:$PORT", "linker.example.com"):
        answer = request(guarded, host=host, extra=OWNER)
        assert status_of(answer) == 200, host
        assert b"get_computer_info" in answer


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:$PORT", "evil.example", "127.0.0.1.evil.example:$PORT", "localhost.evil.example:$PORT",
        "[::ffff:127.0.0.1]:$PORT", "localhost.:$PORT", "127.0.0.1@evil.example:$PORT", "127.0.0.1:1", "127.0.0.1",
        "127.1:$PORT", "0x7f000001:$PORT", "2130706433:$PORT", "0.0.0.0:$PORT", "LOCALHOST:$PORT", "127.0.0.1:0$PORT",
        "127.0.0.1:$PORT:$PORT", "127.0.0.1:$PORT,evil.example", "evil.linker.example.com", "linker.example.com.",
        "linker.example.com:443", "",
    ],
)  # fmt: skip
def test_a_foreign_host_is_refused_even_with_the_token(host: str, guarded: Service) -> None:
    answer = request(guarded, host=host, extra=OWNER)
    assert status_of(answer) in (400, 421)
    assert b"get_computer_info" not in answer


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/control", "/healthz", "/", "/.well-known/oauth-protected-resource"])
def test_every_route_asks_for_the_host_first(path: str, guarded: Service) -> None:
    assert status_of(request(guarded, host="evil.example", extra=OWNER, path=path)) == 421


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "HTTPS://EVIL.EXAMPLE", "null", "file://", "http://127.0.0.1", "http://localhost:1",
        "https://127.0.0.1:$PORT", "http://127.0.0.1:$PORT.evil.example", "http://evil.example@127.0.0.1:$PORT",
        "chrome-extension://abcdef", "http://127.0.0.1:$PORT/", "https://linker.example.com.evil.example", "",
    ],
)  # fmt: skip
def test_a_foreign_origin_is_refused_even_with_the_token(origin: str, guarded: Service) -> None:
    answer = request(guarded, extra=f"Origin: {origin.replace('$PORT', str(guarded.port))}\r\n{OWNER}")
    assert status_of(answer) == 403
    assert b"access-control-allow-origin" not in answer.lower()


@pytest.mark.parametrize("origin", ["http://127.0.0.1:$PORT", "http://localhost:$PORT", "https://linker.example.com"])
def test_our_own_origins_pass(origin: str, guarded: Service) -> None:
    assert status_of(request(guarded, extra=f"Origin: {origin.replace('$PORT', str(guarded.port))}\r\n{OWNER}")) == 200


def test_a_preflight_gets_no_permission(guarded: Service) -> None:
    answer = raw_http(
        guarded.port,
        f"OPTIONS /mcp HTTP/1.1\r\nHost: 127.0.0.1:{guarded.port}\r\nOrigin: https://evil.example\r\n"
        "Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n".encode(),
    )
    assert status_of(answer) == 403
    assert b"access-control-" not in answer.lower()


@pytest.mark.parametrize(
    "doubled",
    [
        "Host: 127.0.0.1:$PORT\r\n", "Origin: http://127.0.0.1:$PORT\r\nOrigin: http://127.0.0.1:$PORT\r\n",
        OWNER, "Content-Type: text/plain\r\n", "Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n",
        "Mcp-Method: tools/call\r\n", "Mcp-Protocol-Version: 2025-11-25\r\n",
        "X-Computer-Linker-Token: a\r\nX-Computer-Linker-Token: b\r\n",
    ],
)  # fmt: skip
def test_a_doubled_header_that_decides_something_is_refused(doubled: str, guarded: Service) -> None:
    answer = request(guarded, extra=OWNER + doubled.replace("$PORT", str(guarded.port)))
    assert status_of(answer) == 400
    assert b"get_computer_info" not in answer


@pytest.mark.parametrize(
    "raw",
    [
        "POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nContent-Length: +5\r\n\r\nhello",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nContent-Length: -1\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nX : a\r\nContent-Length: 0\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n0\r\n\r\n",
        "POST /mcp HTTP/1.1\nHost: 127.0.0.1:$PORT\nContent-Length: 0\n\n",
        "POST /mcp HTTP/9.9\r\nHost: 127.0.0.1:$PORT\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET http://evil.example/mcp HTTP/1.1\r\nHost: 127.0.0.1:$PORT\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=[
        "no host", "length and chunked", "two lengths", "signed length", "negative length", "folded header",
        "space before colon", "unknown coding", "two codings", "bad chunk", "bare line feeds", "unknown version",
        "http2 preface", "absolute form", "tls hello",
    ],
)  # fmt: skip
def test_a_request_two_parsers_could_read_differently_is_refused_and_closed(raw: str, guarded: Service) -> None:
    smuggled = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{guarded.port}\r\nConnection: close\r\n\r\n"
    answer = raw_http(guarded.port, (raw.replace("$PORT", str(guarded.port)) + smuggled).encode("latin-1"))
    assert status_of(answer) in (400, 404, 501), answer
    assert b'"status":"ok"' not in answer, "what followed on the same connection was taken for a request"


@pytest.mark.parametrize(
    ("headers", "body", "wanted"),
    [
        ({"content-type": "application/x-www-form-urlencoded"}, b"a=b", 415),
        ({"content-type": "text/plain"}, b"{}", 415),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x--", 415),
        ({"content-type": "application/json-patch+json"}, b"{}", 415),
        ({"content-encoding": "gzip"}, b"\x1f\x8b\x08" + b"\0" * 40, 415),
        ({"content-encoding": "br"}, b"{}", 415),
        ({"content-length": "99999999999"}, b"{}", 413),
        ({}, b"", 400),
        ({}, b"{", 400),
        ({}, b"\xff\xfe{}", 400),
        ({}, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list"}', 400),
        ({}, b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', 400),
        ({}, b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', 400),
        ({}, b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e999}}', 400),
        ({}, b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}', 400),
        ({}, b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 100 + b"]" * 100 + b"}", 400),
        ({}, b"[" * 200_000, 400),
        ({}, b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400),
        ({}, b"[]", 400),
        ({}, b"null", 400),
        ({}, b'"text"', 400),
        ({}, b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', 400),
        ({}, b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}', 400),
        ({}, b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', 400),
        ({}, b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', 400),
        ({}, b'{"id":1,"method":"tools/list"}', 400),
        ({}, b'{"jsonrpc":"2.0","id":1,"method":7}', 400),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/mcp", "/api/v1/control"])
def test_a_body_that_is_not_one_plain_json_request_is_refused(
    path: str, headers: dict[str, str], body: bytes, wanted: int, guarded: Service
) -> None:
    link = guarded.http()
    status, answer = link.send("POST", path, body, {**modern_headers("tools/list"), **headers})
    link.close()
    assert status == wanted, answer
    assert TOKEN.encode() not in answer


def test_a_body_over_the_limit_is_refused_while_it_comes(guarded: Service) -> None:
    link = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=30)
    before = guarded.memory_mb()
    chunk = b" " * 1_000_000
    headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    try:
        link.request("POST", "/mcp", iter([chunk] * 40), headers, encode_chunked=True)
        status = link.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        status = 413
    finally:
        link.close()
    assert status == 413
    assert guarded.memory_mb() - before < 64


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [("GET", "/api/v1/control", 405), ("PUT", "/mcp", 405), ("TRACE", "/mcp", 405), ("POST", "/healthz", 405),
     ("GET", "/nothing", 404), ("POST", "/mcp/", 404), ("POST", "//mcp", 404), ("POST", "/MCP", 404)],
)  # fmt: skip
def test_other_methods_and_paths_are_not_there(method: str, path: str, wanted: int, guarded: Service) -> None:
    link = guarded.http()
    assert link.send(method, path, {})[0] == wanted
    link.close()


@pytest.mark.parametrize(
    "path",
    ["/api/v1/control", "/healthz", "/mcp/..%2fapi/v1/control", "/api;x=1/v1/control", "/mcp/../api/v1/control",
     "/api%2fv1/control", "/%61pi/v1/control", "/mcp%00", "/mcp;/api/v1/control", "/api/v1/control?x=/mcp"],
)  # fmt: skip
def test_a_public_name_reaches_mcp_only(path: str, guarded: Service) -> None:
    body = json.dumps({"action": "get_computer_info"}).encode()
    answer = request(guarded, host="linker.example.com", extra=OWNER, path=path, body=body)
    assert status_of(answer) in (403, 404)
    assert b"machineId" not in answer


def test_health_says_ok_and_nothing_more_without_a_credential(guarded: Service) -> None:
    link = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=30)
    link.request("GET", "/healthz")
    answer = link.getresponse()
    assert (answer.status, json.loads(answer.read())) == (200, {"status": "ok"})
    names = {name.lower() for name, _ in answer.getheaders()}
    assert not names & {"server", "x-powered-by"}
    link.close()


def test_an_encoded_tool_name_header_is_decoded_before_it_is_compared(guarded: Service) -> None:
    arguments = {"scope": "app", "op": "computer.explain", "input": {"op": "batch.run"}}
    params: dict[str, Any] = {"name": "computer_operation", "arguments": arguments}
    link = guarded.http()
    headers = {**modern_headers("tools/call"), "mcp-name": "=?base64?Y29tcHV0ZXJfb3BlcmF0aW9u?="}
    assert link.send("POST", "/mcp", rpc(1, "tools/call", {**params, "_meta": META}), headers)[0] == 200
    headers["mcp-name"] = "=?base64?Z2V0X2NvbXB1dGVyX2luZm8=?="
    assert link.send("POST", "/mcp", rpc(1, "tools/call", {**params, "_meta": META}), headers)[0] == 400
    link.close()
