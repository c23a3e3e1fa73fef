"""The gate against direct connections on the loopback: requests, a gigabyte, and memory.

Each figure is taken in turn with its limit, as time and as processor time of client, gate and server together: on a busy machine
three processes wait for a processor more often than two, which the processor time does not show.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path

from benchmarks.ratio import Ratio
from computer_linker.model.network import parse_entry
from computer_linker.providers.network.authority import Authority
from computer_linker.providers.network.command_secrets import CommandSecrets
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.reach import Own, Reach, Rules
from computer_linker.system import event_loop
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault

_GIGABYTE = 1 << 30
_HOST = "host.example"
_ROUNDS = 200
_JOBS = {
    "fresh": ("a request on a new connection", 1.5),
    "kept": ("a request on a kept connection", 1.5),
    "tunnel": ("a request on a new connection by CONNECT", 1.5),
    "bulk": ("1 GB", 2.0),
    "tunnelled": ("1 GB by CONNECT", 2.0),
}
_SERVER = """
import http.server, os, ssl, sys
block = os.urandom(1 << 18)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    def do_GET(self):
        size = int(self.path.rpartition("/")[2])
        self.send_response(200); self.send_header("Content-Length", str(size)); self.end_headers()
        while size > 0:
            self.wfile.write(block[:size]); size -= len(block)
        self.wfile.flush()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if sys.argv[1:]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(sys.argv[1])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_port, flush=True)
server.serve_forever()
"""
_CLIENT = """
import http.client, json, socket, ssl, statistics, sys, time
direct, gate, proxy, rounds, size, *others = map(int, sys.argv[1:8])
trusted = {port: ssl.create_default_context(cafile=file) for port, file in zip((direct, gate, proxy), sys.argv[8:])}
class Secured(http.client.HTTPConnection):
    def connect(self):
        super().connect()
        self.sock = trusted[self.port_of].wrap_socket(self.sock, server_hostname="host.example")
def asked(connection, path):
    connection.request("GET", path, headers={"Host": f"host.example:{direct}", "Authorization": "Bearer x"})
    answer = connection.getresponse()
    room = memoryview(bytearray(1 << 20))
    while answer.readinto(room):
        pass
def opened(port, tunnel=False):
    connection = (Secured if trusted else http.client.HTTPConnection)("127.0.0.1", port)
    connection.port_of = port
    if tunnel:
        connection.set_tunnel(f"host.example:{direct}")
    return connection
def clocks():
    # The clock of another process's processor time (CPUCLOCK_SCHED of its number).
    return time.perf_counter(), time.process_time() + sum(time.clock_gettime(~pid << 3 | 2) for pid in others)
def took(work):
    began = clocks(); work(); ended = clocks()
    return [after - before for before, after in zip(began, ended)]
def compared(limit, ours, rounds):
    limit(); ours()
    pairs = [took(limit) + took(ours) for _ in range(rounds)]
    limit_s, limit_used, ours_s, ours_used = zip(*pairs)
    lower = lambda values: statistics.quantiles(values, n=4)[0] if rounds > 9 else statistics.median(values)
    return [lower(limit_s), lower(ours_s), statistics.median(limit_used), statistics.median(ours_used)]
def fresh(port, tunnel=False):
    connection = opened(port, tunnel); asked(connection, "/100"); connection.close()
kept = {port: opened(port) for port in (direct, gate)}
jobs = {
    "fresh": (lambda: fresh(direct), lambda: fresh(gate)),
    "kept": (lambda: asked(kept[direct], "/100"), lambda: asked(kept[gate], "/100")),
}
if not trusted:
    jobs["tunnel"] = (lambda: fresh(direct), lambda: fresh(proxy, True))
found = {name: compared(limit, ours, rounds) for name, (limit, ours) in jobs.items()}
def carried(port, tunnel=False):
    connection = opened(port, tunnel); asked(connection, f"/{size}"); connection.close()
found["bulk"] = compared(lambda: carried(direct), lambda: carried(gate), 3)
if not trusted:
    found["tunnelled"] = compared(lambda: carried(direct), lambda: carried(proxy, True), 3)
print(json.dumps(found))
"""


def run() -> list[Ratio]:
    """Measure with the server, the gate and the client in three processes; then with TLS that the gate opens for a secret."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_with_server([], lambda port, pid: _measured(port, pid, Path(folder), None)), *_opened(Path(folder))]


def _opened(folder: Path) -> list[Ratio]:
    authority = Authority((_HOST,))
    (folder / "server.pem").write_bytes(authority.signed(_HOST))
    (folder / "authority.pem").write_text(authority.pem)
    return _with_server([str(folder / "server.pem")], lambda port, pid: _measured(port, pid, folder, authority))


def _with_server(
    arguments: list[str], measure: Callable[[int, int], Coroutine[None, None, list[Ratio]]]
) -> list[Ratio]:
    server = subprocess.Popen([sys.executable, "-c", _SERVER, *arguments], stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        # The service's own loop.
        return event_loop.run(measure(int(server.stdout.readline()), server.pid))
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


async def _measured(port: int, server: int, folder: Path, authority: Authority | None) -> list[Ratio]:
    entry = parse_entry(f"{_HOST}:{port}=127.0.0.1")
    secrets = None if authority is None else _secrets(port, folder, authority)
    opens = (lambda _host, _port: None) if secrets is None else secrets.of
    rules = Rules(False, (entry,))
    gate = Gate(Reach(lambda: rules, Own(frozenset, frozenset)), secrets=opens)
    gate.listen(None)
    listener = socket.create_server(("127.0.0.1", 0))
    place = listener.getsockname()[1]
    gate.serve(listener, lambda client: gate.take(client, _HOST, port))
    before = _memory()
    arguments = [str(each) for each in (port, place, gate.port, _ROUNDS, _GIGABYTE, os.getpid(), server)]
    if secrets is not None:
        (folder / "inside.pem").write_text(secrets.authority.pem)
        arguments += [str(folder / name) for name in ("authority.pem", "inside.pem", "inside.pem")]
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CLIENT, *arguments, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await client.communicate()
    found = json.loads(out)
    after = _memory()
    await gate.aclose()
    kind = "" if secrets is None else ", TLS opened for a secret"
    rows = []
    for job, (limit_s, ours_s, limit_used, ours_used) in found.items():
        name, reach = _JOBS[job]
        rows.append(Ratio(f"{name}{kind}", ours_s, limit_s, reach))
        rows.append(Ratio(f"{name}{kind}, processor time", ours_used, limit_used, reach))
    return [*rows, Ratio(f"peak memory of the gate's process{kind}", after, before, 1.1, "MB")]


def _secrets(port: int, folder: Path, authority: Authority) -> CommandSecrets:
    vault = Vault(folder)
    stored = StoredSecret(
        name="token", host=_HOST, port=port, variable="TOKEN", authority=authority.pem, value="tok_0123456789abcdefXYZ"
    )
    vault.add(stored, replace=True)
    return CommandSecrets(vault, lambda: ["token"])


def _memory() -> float:
    """The most memory this process has had so far, in megabytes."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
