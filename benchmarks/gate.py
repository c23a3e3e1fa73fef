"""The gate against direct connections on the loopback: requests, a gigabyte, and memory."""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

from benchmarks.ratio import Ratio
from computer_linker.model.network import parse_entry
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.reach import Own, Reach, Rules
from computer_linker.system import event_loop

_GIGABYTE = 1 << 30
_ROUNDS = 300
_SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    def do_GET(self):
        size = int(self.path.rpartition("/")[2])
        self.send_response(200); self.send_header("Content-Length", str(size)); self.end_headers()
        block = bytes(1 << 18)
        while size > 0:
            self.wfile.write(block[:size]); size -= len(block)
        self.wfile.flush()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
"""
_CLIENT = """
import http.client, json, statistics, sys, time
direct, gate, proxy, rounds, size = map(int, sys.argv[1:])
def asked(connection, path):
    connection.request("GET", path, headers={"Host": f"host.example:{direct}"})
    answer = connection.getresponse()
    room = memoryview(bytearray(1 << 20))
    while answer.readinto(room):
        pass
def opened(port, tunnel=False):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    if tunnel:
        connection.set_tunnel(f"host.example:{direct}")
    return connection
def took(work):
    began = time.perf_counter(); work(); return time.perf_counter() - began
def fresh(port, tunnel=False):
    connection = opened(port, tunnel); asked(connection, "/100"); connection.close()
kept = {port: opened(port) for port in (direct, gate)}
jobs = {
    "fresh": (lambda: fresh(direct), lambda: fresh(gate)),
    "tunnel": (lambda: fresh(direct), lambda: fresh(proxy, True)),
    "kept": (lambda: asked(kept[direct], "/100"), lambda: asked(kept[gate], "/100")),
}
found = {}
for name, (limit, ours) in jobs.items():
    limit(); ours()
    pairs = [(took(limit), took(ours)) for _ in range(rounds)]
    found[name] = [statistics.median(side) for side in zip(*pairs)]
bulk = [(took(lambda: asked(opened(direct), f"/{size}")), took(lambda: asked(opened(gate), f"/{size}"))) for _ in range(3)]
found["bulk"] = [statistics.median(side) for side in zip(*bulk)]
print(json.dumps(found))
"""


def run() -> list[Ratio]:
    """Measure with the server, the gate and the client in three processes."""
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        # The service's own loop.
        return event_loop.run(_measured(int(server.stdout.readline())))
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


async def _measured(port: int) -> list[Ratio]:
    entry = parse_entry(f"host.example:{port}=127.0.0.1")
    gate = Gate(Reach(lambda: Rules(False, (entry,)), Own(frozenset, frozenset)))
    gate.listen(None)
    listener = socket.create_server(("127.0.0.1", 0))
    place = listener.getsockname()[1]
    gate.serve(listener, lambda client: gate.take(client, "host.example", port))
    before = _memory()
    arguments = [str(each) for each in (port, place, gate.port, _ROUNDS, _GIGABYTE)]
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CLIENT, *arguments, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await client.communicate()
    found = json.loads(out)
    after = _memory()
    await gate.aclose()
    return [
        Ratio("a request on a new connection", found["fresh"][1], found["fresh"][0], 1.5),
        Ratio("a request on a new connection by CONNECT", found["tunnel"][1], found["tunnel"][0], 1.5),
        Ratio("a request on a kept connection", found["kept"][1], found["kept"][0], 1.5),
        Ratio("1 GB", found["bulk"][1], found["bulk"][0], 2.0),
        Ratio("peak memory of the gate's process", after, before, 1.1, "MB"),
    ]


def _memory() -> float:
    """The most memory this process has had so far, in megabytes."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
