"""`computer-linker halt` takes the desktop back from a real service, also across its restart; only `resume` gives it back."""

import json
import socket
from pathlib import Path
from typing import Any

from computer_linker import home as places
from support.commands import command
from support.road import computer_scope
from support.service import Service, serving


def cli(service: Service, *arguments: str) -> dict[str, Any]:
    done = command(service.home, *arguments, "--json")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def act(service: Service) -> str:
    http = service.http()
    try:
        answer = http.control("computer_operation", scope="desk", op="desktop.press", input={"key": "a"})
    finally:
        http.close()
    code: str = answer["error"]["code"]
    return code


def bridge(service: Service, method: str) -> dict[str, Any]:
    meta = {"schemaVersion": 1, "requestId": "1", "workspacePath": str(service.root)}
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(str(service.home / places.BRIDGE_NAME))
        link.sendall(
            json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": {"meta": meta}}).encode() + b"\n"
        )
        answer: dict[str, Any] = json.loads(link.makefile().readline())
        return answer


def test_halt_holds_across_a_restart_and_the_bridge_is_there(tmp_path: Path) -> None:
    headless = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}
    scopes = [computer_scope()]
    with serving(tmp_path, env=headless, scopes=scopes, bridge={"workspaceRoot": str(tmp_path / "root")}) as service:
        assert bridge(service, "desktop.health")["result"]["bridge"] == {"schemaVersion": 1}
        assert bridge(service, "desktop.find")["error"]["code"] == "DESKTOP_INVALID_REQUEST"
        without_a_keyboard = act(service)
        assert without_a_keyboard != "aborted"
        assert cli(service, "halt")["ended"] == 0
        assert act(service) == "aborted"
        assert service.stop() == 0
        assert not (service.home / places.BRIDGE_NAME).exists()
    with serving(tmp_path, env=headless) as service:
        assert act(service) == "aborted"
        assert cli(service, "resume") == {"resumed": True}
        assert cli(service, "resume")["resumed"] is False
        assert act(service) == without_a_keyboard
