"""A small web server in a process of its own, with redirects and a log of what was asked."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from support.desktop import stop, tied

_SERVER = """
import http.server, sys, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition("?")
        print(path, flush=True)
        to = urllib.parse.parse_qs(query).get("to", [""])[0]
        if path == "/redirect":
            self.send_response(302); self.send_header("Location", to); self.send_header("Content-Length", "0"); self.end_headers(); return
        body = f"<!doctype html><title>{path}</title><h1>Hello from {path}</h1>"
        if path == "/fetch":
            body += f"<p id=o>waiting</p><script>fetch('{to}', {{mode: 'no-cors'}}).then(r => r.type, e => 'failed').then(t => document.title = 'fetch ' + t)</script>"
        data = body.encode()
        self.send_response(200); self.send_header("Content-Type", "text/html"); self.send_header("Content-Length", str(len(data))); self.end_headers(); self.wfile.write(data)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@contextmanager
def web_server() -> Iterator[int]:
    """The port of a server that is not this process."""
    server = subprocess.Popen(
        tied([sys.executable, "-c", _SERVER]), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        stop(server)
