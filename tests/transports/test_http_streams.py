"""Long calls over HTTP: progress as it happens, cancellation by word and by leaving, many connections, slow readers."""

import http.client
import json
import os
import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.service import META, Http, Service, modern_headers, rpc, wait_for
from support.sleepers import running, sleeping


def begin(service: Service, body: dict[str, Any], headers: dict[str, str]) -> http.client.HTTPConnection:
    """Send a request without waiting for its answer."""
    link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    given = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    link.request("POST", "/mcp", json.dumps(body), {**given, **headers})
    return link


def modern(service: Service, params: dict[str, Any]) -> http.client.HTTPConnection:
    meta = {**META, **params.get("_meta", {})}
    return begin(service, rpc(7, "tools/call", {**params, "_meta": meta}), modern_headers("tools/call", params))


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
def test_a_2026_client_that_leaves_ends_its_call(streamed: bool, open_service: Service) -> None:
    marker = f"{os.getpid()}40{streamed:d}"
    params = {**sleeping(marker), **({"_meta": {"progressToken": "p"}} if streamed else {})}
    link = modern(open_service, params)
    wait_for(lambda: running(marker))
    link.close()
    wait_for(lambda: not running(marker))


def test_a_handshake_client_that_leaves_ends_its_call(open_service: Service) -> None:
    marker = f"{os.getpid()}41"
    talk = open_service.http()
    talk.initialize()
    link = begin(open_service, rpc(7, "tools/call", sleeping(marker)), talk.session_headers())
    talk.close()
    wait_for(lambda: running(marker))
    link.close()
    wait_for(lambda: not running(marker))


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
def test_a_cancelled_call_ends_its_child(streamed: bool, open_service: Service) -> None:
    marker = f"{os.getpid()}5{streamed:d}"
    params = {**sleeping(marker), **({"_meta": {"progressToken": "p"}} if streamed else {})}
    talk = open_service.http()
    talk.initialize()
    link = begin(open_service, rpc(8, "tools/call", params), talk.session_headers())
    wait_for(lambda: running(marker))
    notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8}}
    assert talk.send("POST", "/mcp", notice, talk.session_headers())[0] == 202
    wait_for(lambda: not running(marker))
    link.close()
    talk.close()


def test_one_session_cannot_cancel_anothers_call(open_service: Service) -> None:
    marker = f"{os.getpid()}6"
    owner, other = open_service.http(), open_service.http()
    owner.initialize()
    other.initialize()
    link = begin(open_service, rpc(9, "tools/call", sleeping(marker)), owner.session_headers())
    wait_for(lambda: running(marker))
    notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
    other.send("POST", "/mcp", notice, other.session_headers())
    assert other.legacy("tools/list")["result"]["tools"]
    assert running(marker)
    owner.send("POST", "/mcp", notice, owner.session_headers())
    wait_for(lambda: not running(marker))
    for connection in (link, owner, other):
        connection.close()


def test_fifty_http_clients_at_once_get_only_their_own_answers(open_service: Service) -> None:
    def talk(client: int) -> list[str]:
        own = open_service.http()
        words = []
        for turn in range(6):
            call = {"scope": "app", "target": f"http-{client}.txt"}
            write = {**call, "op": "file.write", "input": {"content": f"{client} {turn}"}}
            ask = own.legacy if client % 2 else own.modern
            ask("tools/call", {"name": "computer_operation", "arguments": write})
            read = ask("tools/call", {"name": "computer_operation", "arguments": {**call, "op": "file.read"}})
            words.append(json.loads(read["result"]["content"][0]["text"])["data"]["content"])
        own.close()
        return words

    with ThreadPoolExecutor(50) as pool:
        for client, words in enumerate(pool.map(talk, range(50))):
            assert words == [f"{client} {turn}" for turn in range(6)]


def test_an_honest_client_is_served_while_five_hundred_connections_idle(open_service: Service) -> None:
    idle = [socket.create_connection(("127.0.0.1", open_service.port)) for _ in range(500)]
    try:
        for link in idle[::2]:
            link.sendall(b"POST /mcp HTTP/1.1\r\nHost: x\r\n")
        honest = open_service.http()
        call = {"name": "computer_operation", "arguments": {"scope": "app", "op": "file.stat", "target": "."}}
        times = []
        for _ in range(100):
            began = time.perf_counter()
            assert honest.modern("tools/call", call)["result"]["isError"] is False
            times.append(time.perf_counter() - began)
        honest.close()
        # A bound for a crowded machine: it tells an honest client from one that waits for a thousand others.
        assert statistics.quantiles(times, n=20)[18] < 2
    finally:
        for link in idle:
            link.close()


def test_a_flood_of_connections_neither_locks_out_nor_exhausts(open_service: Service) -> None:
    before = open_service.memory_mb()
    flood = []
    try:
        for _ in range(900):
            flood.append(socket.create_connection(("127.0.0.1", open_service.port), timeout=5))
        began = time.perf_counter()
        honest = open_service.http()
        assert honest.send("GET", "/healthz")[0] == 200
        assert time.perf_counter() - began < 20
        honest.close()
        assert open_service.memory_mb() - before < 64
    finally:
        for link in flood:
            link.close()


def test_a_reader_that_does_not_read_holds_up_nobody_and_little_memory(open_service: Service) -> None:
    (open_service.root / "large.txt").write_text("x" * 900_000)
    call = {"scope": "app", "op": "file.read", "target": "large.txt", "options": {"maxBytes": 1_000_000}}
    before = open_service.memory_mb()
    slow = [modern(open_service, {"name": "computer_operation", "arguments": call}) for _ in range(20)]
    try:
        honest = Http(open_service.port)
        began = time.perf_counter()
        for _ in range(20):
            assert honest.send("GET", "/healthz")[0] == 200
        assert time.perf_counter() - began < 20
        honest.close()
        assert open_service.memory_mb() - before < 64
    finally:
        for link in slow:
            link.close()
