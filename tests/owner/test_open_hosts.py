"""A host that is open for a while because it was asked for: listed, shown, for the folders it was given to, and taken back."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.named_server import NamedServer, named_server
from support.road import folder_scope
from support.service import Service, owner, serving, wait_for

SCRIPT = "curl -sS --noproxy '' -x http://127.0.0.1:24128 -o /dev/null -w '%{http_code}' "


@pytest.fixture(scope="module")
def server() -> Iterator[NamedServer]:
    with named_server() as made:
        yield made


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "root").mkdir()
    with serving(tmp_path, scopes=[_scope(tmp_path / "root")]) as running:
        yield running


def _scope(root: Path) -> dict[str, Any]:
    return folder_scope(root, allowedCommands=["*"], sandbox="required", network=["ask"])


def _call(service: Service, op: str, **parts: Any) -> Any:
    with closing(service.http()) as http:
        return http.control("computer_operation", scope="app", op=op, **parts)


def _opened(service: Service, server: NamedServer) -> str:
    """Open a host for a day by one yes; its entry."""
    entry = f"localhost:{server.port}"
    reach: dict[str, Any] = {"input": {"host": entry, "minutes": 1440}}
    asked = _call(service, "command.reach", **reach)["error"]["details"]["approvalId"]
    owner(service, "approvals", "allow", asked)
    assert _call(service, "command.reach", **reach)["ok"]
    assert _status(service, server) == "200"
    return entry


def _status(service: Service, server: NamedServer) -> str:
    """What a program that connects there is answered."""
    script = f"{SCRIPT} http://localhost:{server.port}/"
    ran = _call(service, "command.run", target=".", input={"command": ["sh", "-c", script]})
    status: str = ran["data"]["stdout"]
    return status


def _asks_again(service: Service, server: NamedServer) -> bool:
    """Whether a program that connects there waits for the owner, and is refused at a no."""
    with ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(_status, service, server)
        (asked,) = wait_for(lambda: _listed(service)["waiting"])
        owner(service, "approvals", "deny", asked["id"])
        return connecting.result(60) == "403"


def _listed(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(owner(service, "approvals", "list", "--json"))
    return found


def _hosts(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _listed(service)["hosts"]
    return found


@pytest.mark.parametrize("how", ["revoke", "revoke all", "deny-host", "deny-host --ask"])
def test_the_owner_takes_it_back(service: Service, server: NamedServer, how: str) -> None:
    entry = _opened(service, server)
    (host,) = _hosts(service)
    assert (host["scope"], host["host"]) == ("app", entry) and host["expiresAt"]
    if how.startswith("revoke"):
        assert "Took back 1" in owner(service, "approvals", "revoke", *([host["id"]] if how == "revoke" else []))
    else:
        owner(service, "scope", "deny-host", "app", "--ask" if "--ask" in how else entry)
        owner(service, "scope", "allow-host", "app", "--ask")
    assert _hosts(service) == [] and _asks_again(service, server)


def test_it_is_not_for_another_folder_of_the_same_id(service: Service, server: NamedServer, tmp_path: Path) -> None:
    _opened(service, server)
    (tmp_path / "other").mkdir()
    config = json.loads((service.home / "config.json").read_text())
    config["scopes"] = [_scope(tmp_path / "other")]
    (service.home / "config.json").write_text(json.dumps(config))
    assert _hosts(service) == [] and _asks_again(service, server)


def test_a_request_to_run_something_names_it(service: Service, server: NamedServer) -> None:
    entry = _opened(service, server)
    owner(service, "scope", "edit", "app", "--policy", "confirm=all")
    _call(service, "command.run", target=".", input={"command": ["true"]})
    assert f"with the network: only {entry}; you are asked for others" in " ".join(
        owner(service, "approvals", "list").split()
    )
