"""A hub with a server of its own and two machines, as separate services, used from the command line and over MCP alone."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.client.socket_client import ask_service
from support.commands import command
from support.lines import stdio
from support.service import PROGRAM, end_service, environment, is_alive, serving, wait_for, write_config

pytestmark = pytest.mark.timeout(400)


def run(home: Path, *arguments: str, ok: bool = True) -> Any:
    done = command(home, *arguments, "--json")
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout.strip().startswith("{") else done.stderr


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[dict[str, Path]]:
    made = {}
    for name in ("hub", "laptop", "desk"):
        made[name] = tmp_path / name
        write_config(made[name], tmp_path / f"{name}-root", machineId=f"{name}-id", machineName=f"{name}-host")
    try:
        yield made
    finally:
        for home in made.values():
            end_service(home)


def states(hub: Path) -> dict[str, str]:
    return {machine["name"]: machine["state"] for machine in told(hub, "hub.machines").get("machines", [])}


def told(home: Path, question: str) -> dict[str, Any]:
    """The answer to an owner's question; empty while there is none."""
    return (ask_service(home, {"owner": question}, within_s=20) or {}).get("data") or {}


def test_machines_join_by_invitation_and_are_used_through_the_hub(homes: dict[str, Path], tmp_path: Path) -> None:
    hub, laptop = homes["hub"], homes["laptop"]
    (tmp_path / "laptop-root" / "a.txt").write_text("on the laptop")
    started = run(hub, "hub", "--embedded", "--detach")
    assert started["connected"] and started["embedded"]
    invitation = tmp_path / "laptop.json"
    run(hub, "hub", "invite", "laptop", "--out", str(invitation))
    assert invitation.stat().st_mode & 0o777 == 0o600
    assert "no scope" in run(laptop, "join", "--creds", str(invitation), "--allow", "nope", ok=False)
    invitation.chmod(0o644)
    assert "chmod 600" in run(laptop, "join", "--creds", str(invitation), "--allow", "app", ok=False)
    invitation.chmod(0o600)
    joined = run(laptop, "join", "--creds", str(invitation), "--allow", "app:fs:read")
    assert joined["joined"]["name"] == "laptop", "it is called as it was invited"
    assert joined["connected"] and joined["joined"]["hubs"][0]["key"] == started["key"]
    wait_for(lambda: states(hub) == {"laptop": "online"})
    assert run(laptop, "join")["joined"] == joined["joined"]
    read = run(hub, "op", "file.read", "a.txt", "--on", "laptop", "--scope", "app")
    assert read["data"]["content"] == "on the laptop"
    denied = run(hub, "op", "file.write", "b.txt", "--on", "[all]", "--scope", "app", "--input", "content=x")
    assert denied["data"]["results"][0]["envelope"]["error"]["code"] == "permission_denied"
    assert not (tmp_path / "laptop-root" / "b.txt").exists()
    copied = run(hub, "peer", "copy", "laptop/app:a.txt", "app:here.txt")
    assert copied == {"from": "laptop/app:a.txt", "to": "here.txt"}
    assert (tmp_path / "hub-root" / "here.txt").read_text() == "on the laptop"
    assert "fs:write" in run(hub, "peer", "copy", "app:here.txt", "laptop/app:b.txt", ok=False)
    assert not (tmp_path / "laptop-root" / "b.txt").exists()
    wait_for(lambda: run(hub, "hub", "history")["events"])
    assert run(hub, "hub", "history", "laptop", "--view", "verify")["valid"]
    with stdio(hub) as lines:
        over_stdio = lines.operation("file.read", "a.txt", scope="[name=laptop]/app")
        assert over_stdio["data"]["results"][0]["envelope"]["data"]["content"] == "on the laptop"
        told = lines.tool("get_operation_history", scope="laptop/app", view="last", limit=1)
        assert json.loads(told["content"][0]["text"])["error"]["code"] == "permission_denied"
        computers = json.loads(lines.tool("get_computer_info", include=["scopes"])["content"][0]["text"])["computers"]
        assert [(item["name"], item["state"], item["via"]) for item in computers] == [("laptop", "online", "fleet")]
    # The same invitation lets no second machine in.
    run(homes["desk"], "join", "--creds", str(invitation), "--allow", "app", "--name", "desk")
    wait_for(lambda: "desk" in states(hub))
    assert states(hub)["desk"] == "pending"
    # Less is allowed at once, and nothing more is asked for than who and what.
    run(laptop, "join", "--hub", started["key"])
    wait_for(lambda: states(hub)["laptop"] == "online")
    closed = run(hub, "op", "file.read", "a.txt", "--on", "laptop", "--scope", "app", ok=False)
    assert closed["error"]["code"] == "unknown_scope"
    run(laptop, "leave")
    assert run(laptop, "join")["joined"] is None
    wait_for(lambda: states(hub)["laptop"] == "left")
    assert not (laptop / "fleet.creds").exists()


def test_a_machine_that_is_forgotten_does_not_come_back_by_its_old_invitation(
    homes: dict[str, Path], tmp_path: Path
) -> None:
    hub, laptop = homes["hub"], homes["laptop"]
    run(hub, "hub", "--embedded", "--detach")
    for name in ("laptop", "desk"):
        run(hub, "hub", "invite", name, "--out", str(tmp_path / f"{name}.json"))
        run(homes[name], "join", "--creds", str(tmp_path / f"{name}.json"), "--allow", "app")
    wait_for(lambda: states(hub) == {"laptop": "online", "desk": "online"})
    assert run(hub, "hub", "forget", "laptop")["forgotten"] == "laptop"
    wait_for(lambda: not told(laptop, "fleet.status")["connected"])
    again = run(laptop, "join", "--creds", str(tmp_path / "laptop.json"), "--allow", "app", ok=False)
    assert again["connected"] is False
    refused = run(hub, "op", "file.list", ".", "--on", "laptop", "--scope", "app", ok=False)
    assert refused["error"]["code"] == "unknown_scope"
    assert states(hub) == {"desk": "online"}
    assert run(hub, "op", "file.list", ".", "--on", "desk", "--scope", "app")["ok"]


def test_one_mcp_endpoint_serves_all_machines_over_http(homes: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "served"
    write_config(folder / "home", folder / "root", machineId="hub-id", machineName="hub")
    with serving(folder) as service:
        started = run(service.home, "hub", "--embedded")
        for name in ("laptop", "desk"):
            invitation = tmp_path / f"{name}.json"
            run(service.home, "hub", "invite", name, "--out", str(invitation))
            run(homes[name], "join", "--creds", str(invitation), "--allow", "app", "--name", f"{name}-x")
        wait_for(lambda: states(service.home) == {"laptop-x": "online", "desk-x": "online"})
        http = service.http()
        info = json.loads(
            http.modern("tools/call", {"name": "get_computer_info", "arguments": {}})["result"]["content"][0]["text"]
        )
        assert {item["name"]: item["scopes"][0]["id"] for item in info["computers"]} == {
            "laptop-x": "app",
            "desk-x": "app",
        }
        call = {"scope": "[all within=20]/app", "op": "file.write", "target": "x.txt", "input": {"content": "x"}}
        told = json.loads(
            http.modern("tools/call", {"name": "computer_operation", "arguments": call})["result"]["content"][0]["text"]
        )
        assert (told["data"]["answered"], told["effect"]) == (2, "confirmed")
        http.close()
        assert (tmp_path / "laptop-root" / "x.txt").read_text() == (tmp_path / "desk-root" / "x.txt").read_text() == "x"
        # The service is killed without a word: its server goes with it, and the next one takes up where it was.
        pid = int((service.home / "nats" / "nats-server.pid").read_text())
        service.process.kill()
        service.process.wait(10)
        wait_for(lambda: not is_alive(pid))
    with serving(folder) as service:
        wait_for(lambda: states(service.home) == {"laptop-x": "online", "desk-x": "online"})
        assert run(service.home, "hub", "--embedded")["key"] == started["key"]


def test_hub_serves_in_the_foreground_and_says_where(homes: dict[str, Path]) -> None:
    hub = homes["hub"]
    child = subprocess.Popen(
        [*PROGRAM, "hub", "--embedded", "--port", "0"], env=environment(hub), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline().startswith("The hub's key: ")
        said = next(line for line in child.stderr if line.startswith("serving http://"))
        assert "MACHINE/SCOPE" in said
        wait_for(lambda: told(hub, "hub.machines").get("connected"))
    finally:
        child.terminate()
        assert child.wait(30) == 0
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    assert not is_alive(int((hub / "nats" / "nats-server.pid").read_text())), "its server ended with it"


def test_ctrl_c_ends_the_hub_before_its_server(homes: dict[str, Path]) -> None:
    hub = homes["hub"]
    with subprocess.Popen(
        [*PROGRAM, "hub", "--embedded", "--port", "0"], env=environment(hub), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            wait_for(lambda: told(hub, "hub.machines").get("connected"))
        finally:
            # A terminal tells everything that runs in it.
            os.killpg(child.pid, signal.SIGINT)
            _, said = child.communicate(timeout=30)
    assert "cannot be reached" not in said
    assert not is_alive(int((hub / "nats" / "nats-server.pid").read_text())), "its server ended with it"


def test_what_cannot_be_used_safely_is_refused_with_a_reason(homes: dict[str, Path], tmp_path: Path) -> None:
    laptop = homes["laptop"]
    for arguments, words in (
        (["nats://example.com:4222"], "TLS"),
        (["http://127.0.0.1"], "tls://"),
        (["tls://user:secret@example.com"], "file"),
        (["nats://127.0.0.1:4222", "--allow", "app"], "hub"),
        (["nats://127.0.0.1:4222", "--hub", "abc", "--allow", "app"], "64"),
        (["nats://127.0.0.1:4222", "--creds", str(tmp_path / "none")], "cannot be opened"),
    ):  # fmt: skip
        assert words in run(laptop, "join", *arguments, ok=False)
    assert "hub" in run(laptop, "hub", "machines", ok=False)
    assert "server" in run(laptop, "hub", ok=False)
    assert not (laptop / "fleet.json").exists()
