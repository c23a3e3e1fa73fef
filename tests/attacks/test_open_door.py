"""A service that asks for no token, and a command that has the network: the one must not become the owner of the other."""

import json
from pathlib import Path
from typing import Any

from attacks.ground import CANARY
from support.road import folder_scope
from support.service import TOKEN, Service, serving

_ASK = """
import json, sys, urllib.request
body = json.dumps({"action": "computer_operation", "scope": "other", "op": "file.read", "target": "a.txt"}).encode()
asked = urllib.request.Request(sys.argv[1], body, {"Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(asked, timeout=5).read().decode())
except OSError as error:
    print(error)
"""


def scopes(tmp_path: Path) -> list[dict[str, Any]]:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text(CANARY)
    return [
        folder_scope(tmp_path / "root", "net", allowedCommands=["*"], network=True),
        folder_scope(tmp_path / "root", "cut", allowedCommands=["*"]),
        folder_scope(other, "other"),
    ]


def ask_from_a_command(service: Service, scope: str) -> dict[str, Any]:
    link = service.http()
    try:
        address = f"http://127.0.0.1:{service.port}/api/v1/control"
        given = {"command": ["python3", "-c", _ASK, address]}
        return link.control("computer_operation", scope=scope, op="command.run", target=".", input=given)
    finally:
        link.close()


def test_a_command_with_the_network_does_not_run_while_no_token_is_asked_for(tmp_path: Path) -> None:
    """SBX-013, with the network allowed."""
    with serving(tmp_path, scopes=scopes(tmp_path)) as service:
        refused = ask_from_a_command(service, "net")
        assert refused["error"]["code"] == "permission_denied"
        assert refused["error"]["details"]["rule"] == "network"
        assert CANARY not in json.dumps(ask_from_a_command(service, "cut"))


def test_a_command_with_the_network_is_not_answered_by_a_service_that_asks_for_its_token(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN, scopes=scopes(tmp_path)) as service:
        ran = ask_from_a_command(service, "net")
        assert "403" in ran["data"]["stdout"]
        assert CANARY not in json.dumps(ran)
