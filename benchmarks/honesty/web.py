"""The page of the rig, served on loopback: what the page handles is posted to a log, commands are fetched from here."""

import queue
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True)
class Page:
    """The served page."""

    address: str
    commands: "queue.Queue[str]"

    def tell(self, word: str) -> None:
        self.commands.put(word)


@asynccontextmanager
async def serving(page: Path, log: Path) -> AsyncIterator[Page]:
    """Serve the page until the context exits."""
    commands: queue.Queue[str] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page.read_bytes()
            if self.path == "/next":
                try:
                    body = commands.get(timeout=2).encode()
                except queue.Empty:
                    body = b""
            self._answer(body)

        def do_POST(self) -> None:
            with log.open("a") as out:
                out.write(self.rfile.read(int(self.headers["Content-Length"])).decode() + "\n")
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # the page left while it waited
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Page(f"http://127.0.0.1:{server.server_port}/", commands)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
