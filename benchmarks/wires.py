"""The leanest clients that can be: prepared requests, raw descriptors, no parsing beyond where an answer ends."""

import json
import os
import selectors
import socket
import time
from typing import Any


class LineCalls:
    """Calls over newline-delimited JSON."""

    def __init__(self, read_fd: int, write_fd: int, call: dict[str, Any]) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._head = b'{"jsonrpc":"2.0","id":'
        self._tail = b',"method":"tools/call","params":' + json.dumps(call).encode() + b"}\n"
        self._next = 1000

    def one_by_one(self, count: int) -> list[float]:
        """The seconds of each call."""
        times = []
        for _ in range(count):
            began = time.perf_counter()
            self._send(1)
            self._receive(1)
            times.append(time.perf_counter() - began)
        return times

    def outstanding(self, count: int, window: int) -> None:
        """`count` calls, always `window` of them under way."""
        self._send(window)
        sent, done = window, 0
        while done < count:
            arrived = self._receive(1)
            done += arrived
            more = min(arrived, count - sent)
            if more > 0:
                self._send(more)
                sent += more

    def _send(self, count: int) -> None:
        parts = []
        for _ in range(count):
            self._next += 1
            parts.append(self._head + str(self._next).encode() + self._tail)
        data = b"".join(parts)
        while data:
            data = data[os.write(self._write_fd, data) :]

    def _receive(self, at_least: int) -> int:
        arrived = 0
        while arrived < at_least:
            data = os.read(self._read_fd, 1 << 20)
            assert data, "the server ended"
            assert b'"error":{' not in data, data
            arrived += data.count(b"\n")
        return arrived


class HttpCalls:
    """Calls over kept-alive HTTP connections, one under way on each."""

    def __init__(self, port: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        content = json.dumps(body).encode()
        lines = [
            "POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json",
            "Accept: application/json, text/event-stream", f"Content-Length: {len(content)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]  # fmt: skip
        self._request = "\r\n".join(lines).encode() + b"\r\n\r\n" + content
        self._port = port
        self._links: list[socket.socket] = []

    def close(self) -> None:
        """Let go of the connections."""
        for link in self._links:
            link.close()

    def one_by_one(self, count: int) -> list[float]:
        """The seconds of each call."""
        link = self._connected(1)[0]
        times = []
        for _ in range(count):
            began = time.perf_counter()
            link.sendall(self._request)
            answer = b""
            while not _is_whole(answer):
                answer += link.recv(1 << 16)
            times.append(time.perf_counter() - began)
        return times

    def outstanding(self, count: int, window: int) -> None:
        """`count` calls over `window` connections."""
        partial = dict.fromkeys(self._connected(window), b"")
        with selectors.DefaultSelector() as waiting:
            for link in partial:
                waiting.register(link, selectors.EVENT_READ)
                link.sendall(self._request)
            sent, done = window, 0
            while done < count:
                for key, _ in waiting.select():
                    link = key.fileobj  # type: ignore[assignment]  # only sockets are registered
                    partial[link] += link.recv(1 << 16)
                    if _is_whole(partial[link]):
                        partial[link] = b""
                        done += 1
                        if sent < count:
                            link.sendall(self._request)
                            sent += 1

    def _connected(self, count: int) -> list[socket.socket]:
        while len(self._links) < count:
            link = socket.create_connection(("127.0.0.1", self._port), timeout=30)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links.append(link)
        return self._links[:count]


def _is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    assert head.startswith(b"HTTP/1.1 200"), answer
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(body) >= int(length) if length else body.endswith(b"0\r\n\r\n")
