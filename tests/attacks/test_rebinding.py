"""Names that a real resolver answers, in a network of their own: one resolution for the check and the connection, both families."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_INSIDE = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or shutil.which("ip") is None, reason="needs Linux and ip"),
    pytest.mark.skipif(
        shutil.which("unshare") is None or subprocess.run([*_INSIDE, "true"], capture_output=True).returncode != 0,
        reason="needs user namespaces",
    ),
]
_SCRIPT = r"""
import asyncio, http.server, json, socket, subprocess, sys, threading
from pathlib import Path
from computer_linker.model.network import parse_entry
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.reach import Own, Reach, Rules

PUBLIC, PUBLIC6 = "93.184.216.34", "2606:4700::99"
run = lambda *words: subprocess.run(words, check=True)
run("ip", "link", "set", "lo", "up")
run("ip", "addr", "add", PUBLIC + "/32", "dev", "lo")
run("ip", "-6", "addr", "add", PUBLIC6 + "/128", "dev", "lo", "nodad")
settings = Path(sys.argv[1]); settings.write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
run("mount", "--bind", str(settings), str(Path("/etc/resolv.conf").resolve()))

answers = {"rebind.example": [[PUBLIC], ["127.0.0.1"]], "both.example": [[PUBLIC, "10.0.0.1"]], "six.example": [[PUBLIC6]],
           "six-private.example": [["fd00::1"]], "six-mapped.example": [["::ffff:127.0.0.1"]], "local.example": [["127.0.0.1"]],
           "link.example": [["169.254.169.254"]]}
asked = []

def reply(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode()); at += 1 + query[at]
    name, kind = ".".join(labels), int.from_bytes(query[at + 1 : at + 3], "big")
    asked.append([name, kind])
    turns = answers.get(name, [[]])
    turn = sum(1 for each in asked if each == [name, kind]) - 1
    family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
    chosen = [text for text in turns[min(turn, len(turns) - 1)] if (":" in text) == (kind == 28)] if kind in (1, 28) else []
    records = b"".join(b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1" + bytes(4) + size.to_bytes(2, "big")
                       + socket.inet_pton(family, text) for text in chosen)
    return query[:2] + b"\x81\x80\0\1" + len(chosen).to_bytes(2, "big") + bytes(4) + query[12 : at + 5] + records

resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); resolver.bind(("127.0.0.1", 53))
def resolve():
    while True:
        query, sender = resolver.recvfrom(4096); resolver.sendto(reply(query), sender)
threading.Thread(target=resolve, daemon=True).start()

reached = []
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        reached.append(self.connection.getsockname()[0]); body = b"reached"
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
class Six(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
for kind, place in ((http.server.ThreadingHTTPServer, PUBLIC), (http.server.ThreadingHTTPServer, "127.0.0.1"), (Six, PUBLIC6)):
    threading.Thread(target=kind((place, 80), Handler).serve_forever, daemon=True).start()

async def get(gate, name):
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(f"GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read(-1); writer.close()
    return answer.split(b" ")[1].decode(), answer.rpartition(b"\n\n" if b"\n\n" in answer else b"\r\n")[2].decode().strip()

async def main():
    def made():
        gate = Gate(Reach(lambda: Rules(False, (*map(parse_entry, answers), parse_entry(f"[{PUBLIC6}]"))), Own(frozenset, frozenset)))
        gate.listen(None); return gate
    found, gate = {}, made()
    found["first"] = [(await get(gate, "rebind.example"))[0] for _ in range(3)]
    found["lookups"] = sum(1 for name, kind in asked if name == "rebind.example" and kind == 1)
    found["firstReached"] = list(reached); reached.clear()
    later = made()
    found["later"] = await get(later, "rebind.example")
    for name in list(answers)[1:] + [f"[{PUBLIC6}]", "[::1]", PUBLIC]:
        found[name] = await get(gate, name)
    found["reached"] = list(reached)
    found["unlisted"] = (await get(gate, "data.evil.example"))[0]
    found["unlistedAsked"] = any(name == "data.evil.example" for name, _ in asked)
    await gate.aclose(); await later.aclose()
    print(json.dumps(found))
asyncio.run(asyncio.wait_for(main(), 60))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    settings: Path = tmp_path_factory.mktemp("resolver") / "resolv.conf"
    ran = subprocess.run(
        [*_INSIDE, sys.executable, "-c", _SCRIPT, str(settings)], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def test_a_resolver_that_answers_anew_changes_nothing_while_its_first_answer_holds(found: dict[str, Any]) -> None:
    assert found["first"] == ["200"] * 3 and found["lookups"] == 1
    assert found["firstReached"] == ["93.184.216.34"] * 3


def test_a_name_that_turned_private_is_refused(found: dict[str, Any]) -> None:
    status, text = found["later"]
    assert status == "403" and "rebind.example is not opened: it has a private address" in text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("both.example", "private address"),
        ("local.example", "private address"),
        ("six-private.example", "private address"),
        ("six-mapped.example", "private address"),
        ("link.example", "credentials"),
        ("[::1]", "not in the network list"),
        ("93.184.216.34", "not in the network list"),
    ],
)
def test_what_a_name_or_address_must_not_lead_to(found: dict[str, Any], name: str, why: str) -> None:
    status, text = found[name]
    assert status == "403" and why in text


@pytest.mark.parametrize("name", ["six.example", "[2606:4700::99]"])
def test_an_allowed_name_and_address_of_ipv6_are_reached(found: dict[str, Any], name: str) -> None:
    assert found[name] == ["200", "reached"]


def test_only_the_allowed_addresses_were_reached(found: dict[str, Any]) -> None:
    assert found["reached"] == ["2606:4700::99"] * 2


def test_a_name_that_is_not_listed_is_asked_of_no_resolver(found: dict[str, Any]) -> None:
    assert found["unlisted"] == "403" and found["unlistedAsked"] is False
