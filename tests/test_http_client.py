"""The HTTP client against real sockets: its deadline, its size limit, and what it must not follow."""

import gzip
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from computer_linker.http_client import Pinned, RequestFailed, fetch, fetch_now

pytestmark = pytest.mark.anyio


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, str]] = []
        self.closing = Event()
        self.base = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers["host"]))
        length = int(self.headers.get("content-length", 0))
        sent = self.rfile.read(length)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("location", "/large")
            self.end_headers()
            return
        self.send_response(200)
        body = {"/large": b"x" * 70_000, "/echo": sent, "/packed": gzip.compress(b"x" * 1_000_000)}.get(
            self.path, b"ok"
        )
        if self.path == "/packed":
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        if self.path == "/slow":
            while not self.server.closing.wait(0.1):
                self.wfile.write(b".")
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


async def failure(url: str, **options: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        await fetch(url, **{"seconds": 5, **options})
    return caught.value


async def test_a_response_is_bounded_in_size_and_never_unpacked() -> None:
    with serving() as server:
        assert (await failure(f"{server.base}/large")).kind == "size"
        assert len((await fetch(f"{server.base}/large", seconds=5, max_bytes=70_000)).body) == 70_000
        assert len((await fetch(f"{server.base}/packed", seconds=5)).body) < 5_000


async def test_the_deadline_is_for_the_whole_response() -> None:
    with serving() as server:
        began = time.monotonic()
        assert (await failure(f"{server.base}/slow", seconds=0.5)).kind == "timeout"
        assert time.monotonic() - began < 5


async def test_a_redirect_is_returned_and_not_followed() -> None:
    with serving() as server:
        answer = await fetch(f"{server.base}/moved", seconds=5)
        assert answer.status == 302 and answer.headers["location"] == "/large"
        assert [path for _, path, _ in server.asked] == ["/moved"]


async def test_no_proxy_of_the_environment_is_used() -> None:
    names = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
    before = {name: os.environ.get(name) for name in names}
    with serving() as server, serving() as proxy:
        try:
            os.environ.update(dict.fromkeys(names, proxy.base))
            assert (await fetch(f"{server.base}/", seconds=5)).body == b"ok"
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        assert proxy.asked == []


async def test_a_pinned_address_gets_the_name_and_the_path_to_the_letter() -> None:
    with serving() as server:
        url = f"http://some.invalid:{server.server_port}/a'b%2Fc?q=<1>"
        assert (await fetch(url, seconds=5, pinned=Pinned("127.0.0.1"))).status == 200
        assert server.asked == [("GET", "/a'b%2Fc?q=<1>", f"some.invalid:{server.server_port}")]


async def test_the_step_that_failed_is_named() -> None:
    with serving() as server:
        base = server.base
    assert (await failure(f"{base}/")).kind == "connection"
    assert (await failure("http://no-such-name.invalid/")).kind == "name"
    with serving() as server:
        assert (await failure(server.base.replace("http:", "https:"))).kind == "tls"


def test_json_and_forms_are_sent_without_an_event_loop() -> None:
    with serving() as server:
        url = f"{server.base}/echo"
        assert fetch_now(url, seconds=5, method="POST", json={"a": 1}).text.replace(" ", "") == '{"a":1}'
        assert fetch_now(url, seconds=5, method="POST", form=[("a", "1 2")]).text == "a=1+2"
