"""A TLS server of files that wants a credential, in a process of its own: Bearer, or the password of Basic."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support.certificates import Certificate
from support.desktop import stop, tied

_SERVER = """
import base64, functools, http.server, ssl, sys
folder, certificate, key, secret = sys.argv[1:]
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def is_allowed(self):
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            given = base64.b64decode(given).decode().partition(":")[2]
        return given == secret
    def do_GET(self):
        if self.is_allowed():
            return super().do_GET()
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextlib.contextmanager
def guarded_server(folder: Path, certificate: Certificate, secret: str) -> Iterator[int]:
    """The port of a server of these files that answers 401 without the secret."""
    process = subprocess.Popen(
        tied([sys.executable, "-c", _SERVER, str(folder), str(certificate.file), str(certificate.key), secret]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        stop(process)
