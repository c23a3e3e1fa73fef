"""HTTP requests that two servers could read in two ways: framing, fields behind the body, odd paths, and heads without measure."""

import json
import socket
from collections.abc import Iterator

import pytest

from attacks.ground import told_to_the_owner
from support.service import META, TOKEN, Service, modern_headers, raw_http, rpc, serving

PUBLIC = "x.example.com"
LIST = json.dumps(rpc(1, "tools/list", {"_meta": META}))
CHUNK = f"{len(LIST):x}\r\n{LIST}\r\n"
CONTROL = '{"action":"get_computer_info"}'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("http"), token=TOKEN, publicBaseUrl=f"https://{PUBLIC}") as running:
        yield running


def post(service: Service, rest: str, start: str = "POST /mcp HTTP/1.1", *, is_owner: bool = True) -> str:
    """A head with all that an honest request has, up to `rest`."""
    headers = {
        "Host": f"127.0.0.1:{service.port}", "Content-Type": "application/json", "Connection": "close",
        "Accept": "application/json, text/event-stream", **modern_headers("tools/list"),
    }  # fmt: skip
    if is_owner:
        headers["Authorization"] = f"Bearer {TOKEN}"
    return f"{start}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + rest


def status_of(service: Service, request: str) -> int:
    """The one status these bytes are answered with."""
    answer = raw_http(service.port, request.replace("$PORT", str(service.port)).encode("latin-1"))
    assert answer.count(b"HTTP/1.1 ") == 1, answer
    return int(answer.split(b" ")[1])


@pytest.mark.parametrize(
    "rest",
    [
        f"Content-Length: {len(LIST)}\r\n\r\n{LIST}",
        f"Transfer-Encoding: chunked\r\n\r\n{CHUNK}0\r\n\r\n",
        f"Transfer-Encoding:\tChunked\r\n\r\n{len(LIST):X};name=value\r\n{LIST}\r\n0\r\n\r\n",
    ],
)
def test_an_honest_request_is_answered(service: Service, rest: str) -> None:
    assert status_of(service, post(service, rest)) == 200


@pytest.mark.parametrize(
    "rest",
    [
        f"Content-Length: +{len(LIST)}\r\n\r\n{LIST}", f"Content-Length: {len(LIST)}, {len(LIST)}\r\n\r\n{LIST}",
        f"Content-Length: 0x{len(LIST):x}\r\n\r\n{LIST}", f"Content-Length: {'9' * 30}\r\n\r\n{LIST}",
        f"Content-Length: -1\r\n\r\n{LIST}", f"Content-Length: {len(LIST)}\r\nContent-Length: {len(LIST)}\r\n\r\n{LIST}",
        f"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n{CHUNK}0\r\n\r\n",
        f"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n{CHUNK}0\r\n\r\n",
        f"Transfer-Encoding: chunked, identity\r\n\r\n{CHUNK}0\r\n\r\n", f"Transfer-Encoding: gzip, chunked\r\n\r\n{CHUNK}0\r\n\r\n",
        f"Transfer-Encoding: identity\r\nContent-Length: {len(LIST)}\r\n\r\n{LIST}",
        f"Transfer-Encoding: \x0bchunked\r\n\r\n{CHUNK}0\r\n\r\n", f"Transfer-Encoding : chunked\r\n\r\n{CHUNK}0\r\n\r\n",
        f"Transfer-Encoding: chunked\r\n\r\n0x{CHUNK}0\r\n\r\n", f"Transfer-Encoding: chunked\r\n\r\n+{CHUNK}0\r\n\r\n",
        f"Transfer-Encoding: chunked\r\n\r\n{'f' * 16}{CHUNK}0\r\n\r\n", f"Transfer-Encoding: chunked\r\n\r\n {CHUNK}0\r\n\r\n",
        f"Transfer-Encoding: chunked\r\n\r\n{len(LIST):x};a\n{LIST}\r\n0\r\n\r\n",
        f"Transfer-Encoding: chunked\r\n\r\n{len(LIST):x}\r\n{LIST}XX0\r\n\r\n", "X: a\rHost: evil\r\nContent-Length: 0\r\n\r\n",
        "X: a\0\r\nContent-Length: 0\r\n\r\n", ": a\r\nContent-Length: 0\r\n\r\n", "Content-Length: 0\nX: 1\r\n\r\n",
    ],
)  # fmt: skip
def test_a_body_whose_end_is_in_doubt_is_not_taken(service: Service, rest: str) -> None:
    assert status_of(service, post(service, rest)) == 400


@pytest.mark.parametrize("field", [f"Authorization: Bearer {TOKEN}", "X-Digest: 1"])
def test_a_field_behind_the_body_counts_for_nothing(service: Service, field: str) -> None:
    """Who asks, and which host is meant, stands in the head."""
    rest = f"Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n{CHUNK}0\r\n{field}\r\n\r\n"
    assert status_of(service, post(service, rest, is_owner=False)) in (400, 401)


@pytest.mark.parametrize(
    ("start", "status"),
    [
        ("POST /mcp HTTP/2.0", 400), ("POST /mcp HTTP/1.2", 400), ("POST /mcp HTTP/1.1x", 400), ("POST /mcp", 400),
        ("POST /mcp#x HTTP/1.1", 400), ("POST /mcp\xff HTTP/1.1", 400), ("POST /mcp\x01 HTTP/1.1", 400),
        ("POST http://127.0.0.1:$PORT/mcp HTTP/1.1", 400), ("POST mcp HTTP/1.1", 400), ("POST * HTTP/1.1", 400),
        ("post /mcp HTTP/1.1", 400), ("BREW /mcp HTTP/1.1", 400), ("PRI * HTTP/2.0", 400), ("CONNECT 127.0.0.1:22 HTTP/1.1", 400),
        ("POST /%6dcp HTTP/1.1", 404), ("POST /mcp%2f HTTP/1.1", 404), ("POST /%c0%af/mcp HTTP/1.1", 404),
        ("POST /mcp/ HTTP/1.1", 404), ("POST //mcp HTTP/1.1", 404), ("POST /./mcp HTTP/1.1", 404), ("POST /mcp; HTTP/1.1", 404),
        ("POST /.well-known/oauth-protected-resource/mcp HTTP/1.1", 405), ("GET /.well-known/oauth-protected-resource/x HTTP/1.1", 404),
        ("GET /.well-known/oauth-authorization-serverx HTTP/1.1", 404), ("TRACE /mcp HTTP/1.1", 405), ("PUT /mcp HTTP/1.1", 405),
    ],
)  # fmt: skip
def test_a_first_line_is_read_in_one_way(service: Service, start: str, status: int) -> None:
    assert status_of(service, post(service, f"Content-Length: {len(LIST)}\r\n\r\n{LIST}", start)) == status


def test_a_body_in_an_http_1_0_request_has_a_length(service: Service) -> None:
    rest = f"Transfer-Encoding: chunked\r\n\r\n{CHUNK}0\r\n\r\n"
    assert status_of(service, post(service, rest, "POST /mcp HTTP/1.0")) == 400


@pytest.mark.parametrize("path", ["/%61pi/v1/control", "/api/v1/%63ontrol", "/api/v1/control%00"])
@pytest.mark.parametrize("host", [PUBLIC, "127.0.0.1:$PORT"])
def test_an_encoded_path_is_no_way_past_a_rule(service: Service, path: str, host: str) -> None:
    request = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(CONTROL)}\r\nConnection: close\r\n\r\n{CONTROL}"
    )
    assert status_of(service, request) == 404


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-7", "application/json;charset=utf-16", "application/json, text/plain", "text/json",
        "application/json-patch+json", "text/plain;application/json", "multipart/form-data; boundary=x", "",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/mcp", "/register"])
def test_a_body_is_plain_json_or_nothing(service: Service, path: str, kind: str) -> None:
    request = post(service, f"Content-Length: {len(LIST)}\r\n\r\n{LIST}", f"POST {path} HTTP/1.1")
    given = "" if not kind else f"Content-Type: {kind}\r\n"
    assert status_of(service, request.replace("Content-Type: application/json\r\n", given)) == 415


@pytest.mark.parametrize("many", [300, 5_000])
def test_a_head_of_many_fields_is_not_taken(service: Service, many: int) -> None:
    fields = "".join(f"X-{number}: 1\r\n" for number in range(many))
    assert status_of(service, post(service, f"{fields}Content-Length: 0\r\n\r\n")) in (400, 431)


@pytest.mark.parametrize("start", ["1;a=", "0\r\nX: ", "0\r\n"], ids=["an extension", "a trailer", "trailers"])
def test_what_surrounds_a_body_has_an_end(service: Service, start: str) -> None:
    """A piece of one byte, or none, and megabytes around it."""
    piece = b"X: 1\r\n" * 10_000 if start.endswith("\n") else b"a" * 60_000
    before = service.memory_mb()
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as link:
        link.sendall(post(service, f"Transfer-Encoding: chunked\r\n\r\n{start}").encode())
        with pytest.raises(OSError):  # whichever write meets the closed connection
            for _ in range(1000):
                link.sendall(piece)
            pytest.fail("the service took 60 MB around one byte")
    assert service.memory_mb() - before < 16


def test_a_second_request_behind_a_refused_one_is_not_answered(service: Service) -> None:
    first = "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    then = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nConnection: close\r\n\r\n"
    assert status_of(service, first + then) == 421


@pytest.mark.parametrize("upgrade", ["websocket", "h2c", "TLS/1.0"])
def test_nobody_gets_another_protocol(service: Service, upgrade: str) -> None:
    rest = f"Connection: Upgrade, close\r\nUpgrade: {upgrade}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
    request = f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {TOKEN}\r\n{rest}"
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as link:
        link.sendall(request.encode())
        assert link.recv(65536).startswith(b"HTTP/1.1 405 ")
        link.sendall(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        link.settimeout(2)
        try:
            told = link.recv(65536)
        except OSError:
            told = b""
        assert b'"ok"' not in told


@pytest.mark.parametrize(
    ("headers", "status", "rule"),
    [
        ("Host: evil.example:$PORT", 421, "foreign_host"),
        ("Host: 127.0.0.1:$PORT\r\nOrigin: https://evil.example", 403, "foreign_origin"),
        ("Host: 127.0.0.1:$PORT\r\nSec-Fetch-Site: cross-site", 403, "foreign_page"),
        ("Host: 127.0.0.1:$PORT\r\nSec-Fetch-Site: same-site", 403, "foreign_page"),
    ],
)
def test_what_a_foreign_page_sends_is_refused_and_told_to_the_owner(
    service: Service, headers: str, status: int, rule: str
) -> None:
    request = (
        f"GET /api/v1/capabilities HTTP/1.1\r\n{headers}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    )
    assert status_of(service, request) == status
    noted = [event for event in told_to_the_owner(service) if event.get("reason") == rule]
    assert noted and noted[0]["principal"] == "unauthenticated"
    assert "evil" not in json.dumps(noted), "what a stranger says is not kept"
