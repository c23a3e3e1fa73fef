"""A server in a process of its own that says what reached it, over HTTP or HTTPS, and listeners that only accept."""

import contextlib
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from support.certificates import Certificate
from support.desktop import stop, tied
from support.waiting import wait_for

_SERVER = """
import http.server, json, ssl, sys, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
    def read(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))
    def do_GET(self):
        body = self.read()
        # One write a line: requests are served in threads.
        sys.stdout.write(json.dumps([self.command, self.path, self.headers.items(), len(body)]) + "\\n")
        sys.stdout.flush()
        path, _, query = self.path.partition("?")
        asked = {name: value[0] for name, value in urllib.parse.parse_qs(query).items()}
        if path == "/redirect":
            return self.answer(b"", 302, Location=asked["to"])
        if path == "/big":
            size = int(asked["size"])
            self.send_response(200); self.send_header("Content-Length", str(size)); self.end_headers()
            block = bytes(1 << 18)
            while size > 0:
                self.wfile.write(block[:size]); size -= len(block)
            return None
        if path == "/chunked":
            self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
            for part in (b"one ", b"two ", b"three"):
                self.wfile.write(b"%x\\r\\n%b\\r\\n" % (len(part), part))
            self.wfile.write(b"0\\r\\n\\r\\n"); return None
        if path == "/reflect":
            return self.answer(json.dumps(dict(self.headers.items())).encode() + body, X_Seen=self.headers.get("Authorization", "-"))
        return self.answer(f"Hello {self.headers['Host']} {self.path} {len(body)}".encode())
    do_POST = do_PUT = do_HEAD = do_OPTIONS = do_GET
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if sys.argv[1:]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(*sys.argv[1:3])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@dataclass
class NamedServer:
    """`seen` has every request: method, path, headers, and the size of its body."""

    port: int
    is_tls: bool = False
    _seen: list[tuple[str, str, dict[str, str], int]] = field(default_factory=list)
    _marks: int = 0

    @property
    def seen(self) -> list[tuple[str, str, dict[str, str], int]]:
        """Every request so far: a mark of our own, asked for last, shows that none is still on its way."""
        self._marks += 1
        path = f"/mark-{self._marks}"
        with socket.create_connection(("127.0.0.1", self.port)) as plain, self.wrap(plain) as marker:
            marker.sendall(f"GET {path} HTTP/1.1\r\nHost: mark\r\nConnection: close\r\n\r\n".encode())
            wait_for(lambda: any(request[1] == path for request in self._seen))
            while marker.recv(4096):
                pass
        return [request for request in self._seen if not request[1].startswith("/mark-")]

    def wrap(self, plain: socket.socket) -> socket.socket:
        """A connection as the server wants it."""
        if not self.is_tls:
            return plain
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(plain)


@contextlib.contextmanager
def named_server(certificate: Certificate | None = None) -> Iterator[NamedServer]:
    """A server on the loopback."""
    files = [] if certificate is None else [str(certificate.file), str(certificate.key)]
    process = subprocess.Popen(
        tied([sys.executable, "-c", _SERVER, *files]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    server = NamedServer(int(process.stdout.readline()), certificate is not None)

    def read(lines: Any) -> None:
        for line in lines:
            method, path, headers, size = json.loads(line)
            server._seen.append((method, path, {name.lower(): value for name, value in headers}, size))

    reader = threading.Thread(target=read, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        yield server
    finally:
        stop(process)
        reader.join(10)


_TALKER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    client, _ = listener.accept()
    client.sendall(b"220 speaks first\\r\\n")
    while piece := client.recv(65536):
        client.sendall(piece)
    client.close()
"""


@contextlib.contextmanager
def talker() -> Iterator[int]:
    """The port of a server that speaks first and then repeats what it gets."""
    process = subprocess.Popen(
        tied([sys.executable, "-c", _TALKER]), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        stop(process)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
