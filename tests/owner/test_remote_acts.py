"""Each act of the owner that concerns other computers is in the history: who, what, about what, with what effect, no secret."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import command
from support.service import TOKEN, end_service, serving, wait_for, write_config
from support.standins import install

pytestmark = pytest.mark.timeout(400)


def cli(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command(home, *words, "--json")


def run(home: Path, *words: str) -> dict[str, Any]:
    done = cli(home, *words)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def acts(home: Path, op: str) -> list[dict[str, Any]]:
    """The owner's events of this operation, the oldest first."""
    found = run(home, "history", "--query", f"op:{op}", "--limit", "200")["events"]
    return [event for event in reversed(found) if event["principal"].startswith("cli:")]


def act(home: Path, op: str, **about: Any) -> dict[str, Any]:
    """The one event of this operation with these notes; it was intended, and its effect is known."""
    (event,) = [one for one in acts(home, op) if one["summary"].items() >= about.items()]
    return event


def stored(home: Path) -> str:
    """Everything the history keeps, as it lies on the disk."""
    return "".join(path.read_text("utf-8", "replace") for path in (home / "audit").rglob("*") if path.is_file())


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[dict[str, Path]]:
    made = {name: tmp_path / name for name in ("hub", "laptop", "desk")}
    for name, home in made.items():
        write_config(home, tmp_path / f"{name}-root", machineId=f"{name}-id", machineName=name)
    try:
        yield made
    finally:
        for home in made.values():
            end_service(home)


def test_acts_on_paired_computers(homes: dict[str, Path], tmp_path: Path) -> None:
    desk, laptop = homes["desk"], homes["laptop"]
    (tmp_path / "laptop-root" / "a.txt").write_text("on the laptop")
    where = run(laptop, "peer", "listen", "--port", "0")["listening"]
    code = run(laptop, "peer", "pair", "--allow", "app:fs:read")["code"]
    assert run(desk, "peer", "pair", where, code)["name"] == "laptop"
    run(desk, "peer", "copy", "laptop/app:a.txt", "app:b.txt")
    config = json.loads((laptop / "config.json").read_text())
    (laptop / "config.json").write_text(json.dumps({**config, "machineName": "renamed"}))
    end_service(desk)
    assert cli(desk, "op", "file.read", "a.txt", "--on", "laptop", "--scope", "app").returncode == 1
    word = run(desk, "peer", "accept", "laptop")["word"]
    assert cli(desk, "peer", "accept", "laptop", "another").returncode == 1
    assert run(desk, "peer", "accept", "laptop", word)["accepted"]
    run(laptop, "peer", "remove", "desk")
    assert cli(laptop, "peer", "remove", "nobody").returncode == 1
    assert run(laptop, "peer", "listen", "--off") == {"listening": None}

    assert act(laptop, "peer.listen", listening=where, before=None)["effect"] == "confirmed"
    assert act(laptop, "peer.listen", listening=None, before=where)["effect"] == "confirmed"
    invited = act(laptop, "peer.pair", step="invite", grants="app:fs:read", listening=where)
    assert (invited["outcome"], invited["effect"]) == ("done", "confirmed")
    joined = act(desk, "peer.pair", step="join", address=where, computer="laptop", machine="laptop-id")
    assert (joined["outcome"], joined["effect"]) == ("done", "confirmed")
    copied = act(desk, "peer.copy", source="laptop/app", destination="app")
    assert copied["effect"] == "confirmed"
    (part,) = [one for one in acts(desk, "file.copy") if one["parent"] == copied["operationId"]]
    assert part["effect"] == "confirmed"
    assert act(desk, "peer.accept", computer="laptop", accepted=True)["effect"] == "confirmed"
    assert [one["errorCode"] for one in acts(desk, "peer.accept")] == [None, "conflict", None]
    assert act(laptop, "peer.remove", computer="desk", grants="app:fs:read")["effect"] == "confirmed"
    assert [one["outcome"] for one in acts(laptop, "peer.remove")] == ["done", "failed"]
    for home in (desk, laptop):
        assert code not in stored(home) and code.replace("-", "") not in stored(home)


def is_reached(where: str) -> bool:
    host, _, port = where.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def test_listening_lasts_and_ends_over_restarts(homes: dict[str, Path]) -> None:
    laptop = homes["laptop"]
    where = run(laptop, "peer", "listen", "--port", "0")["listening"]
    for is_on in (True, False):
        if not is_on:
            run(laptop, "peer", "listen", "--off")
            assert not is_reached(where)
        end_service(laptop)
        run(laptop, "op", "file.list", ".", "--scope", "app")
        assert run(laptop, "peer", "list")["listening"] == (where if is_on else None)
        assert is_reached(where) is is_on


def test_acts_of_a_fleet(homes: dict[str, Path], tmp_path: Path) -> None:
    hub, laptop, desk = homes["hub"], homes["laptop"], homes["desk"]
    invitation = tmp_path / "laptop.json"
    started = run(hub, "hub", "--embedded", "--detach")
    run(hub, "hub", "invite", "laptop", "--out", str(invitation))
    assert cli(hub, "hub", "invite", "laptop", "--out", str(invitation)).returncode == 1
    assert run(laptop, "join", "--creds", str(invitation), "--allow", "app:fs:read")["connected"]
    # The invitation is used up: the second machine has to be trusted.
    run(desk, "join", "--creds", str(invitation), "--allow", "app", "--name", "desk")
    wait_for(lambda: "desk" in {one["name"] for one in run(hub, "hub", "machines")["machines"]})
    (key,) = [one["key"] for one in run(hub, "hub", "machines")["machines"] if one["name"] == "desk"]
    run(hub, "hub", "trust", key)
    assert cli(hub, "hub", "trust", "f" * 64).returncode == 1
    run(hub, "hub", "forget", "laptop")
    run(desk, "leave")
    run(hub, "hub", "stop")

    server = started["url"]
    assert act(hub, "hub.start", server=server, embedded=True, connected=True)["effect"] == "confirmed"
    assert act(hub, "hub.invite", name="laptop", file="laptop.json", server=server)["effect"] == "confirmed"
    assert [one["outcome"] for one in acts(hub, "hub.invite")] == ["done", "failed"]
    assert act(hub, "hub.trust", key_sha256=key, name="desk", machine="desk-id")["effect"] == "confirmed"
    assert act(hub, "hub.trust", key_sha256="f" * 64)["errorCode"] == "not_found"
    assert act(hub, "hub.forget", name="laptop", machine="laptop-id")["effect"] == "confirmed"
    assert act(hub, "hub.stop", server=server)["effect"] == "confirmed"
    joined = act(laptop, "fleet.join", server=server, name="laptop", grants="app:fs:read", connected=True)
    assert (joined["effect"], joined["summary"]["hub_sha256"]) == ("confirmed", started["key"])
    assert act(desk, "fleet.leave", server=server)["effect"] == "confirmed"
    invited = json.loads(invitation.read_text())
    for home in homes.values():
        assert invited["secret"] not in stored(home) and invited["nkeySeed"] not in stored(home)


def test_a_hub_that_cannot_start_changes_nothing(homes: dict[str, Path]) -> None:
    hub = homes["hub"]
    (hub / "nats" / "nats-server.conf").mkdir(parents=True)
    failed = cli(hub, "hub", "start", "--embedded")
    assert failed.returncode == 1 and "nats-server.conf cannot be written" in failed.stderr
    assert json.loads((hub / "fleet.json").read_text())["hub"] is None
    assert cli(hub, "hub", "machines").returncode == 1
    assert [(one["outcome"], one["effect"]) for one in acts(hub, "hub.start")] == [("failed", None)]


def test_acts_on_a_tunnel_and_a_start_that_fails_changes_nothing(tmp_path: Path) -> None:
    program = install(tmp_path / "programs", "cloudflared")
    tunnel = {"cloudflare": {"program": str(program)}}
    with serving(tmp_path, token=TOKEN, tunnel=tunnel) as running:
        home, config = running.home, running.home / "config.json"
        before = config.read_bytes()
        (home / "tunnel").mkdir(mode=0o700, exist_ok=True)
        (home / "tunnel" / "standin.json").write_text('{"mode": "ends"}')
        failed = cli(home, "tunnel", "start", "cloudflare", "--port", "0")
        assert (failed.returncode, failed.stdout) == (1, "") and "cloudflare tunnel is" in failed.stderr
        assert config.read_bytes() == before
        assert run(home, "tunnel", "status")["tunnel"]["state"] == "stopped", "nothing goes on trying"
        (home / "tunnel" / "standin.json").unlink()
        opened = run(home, "tunnel", "start", "cloudflare")
        kept = config.read_bytes()
        assert json.loads(kept)["tunnel"]["provider"] == "cloudflare"
        # Another that fails leaves this one open, and the config as it is.
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            assert cli(home, "tunnel", "start", "cloudflare", "--port", port).returncode == 1
        assert config.read_bytes() == kept
        wait_for(lambda: cli(home, "tunnel", "status").returncode == 0)
        run(home, "tunnel", "stop")
        starts = acts(home, "tunnel.start")
        assert [(one["outcome"], one["effect"]) for one in starts] == [
            ("failed", None), ("done", "confirmed"), ("failed", None),
        ]  # fmt: skip
        assert all(one["summary"]["provider"] == "cloudflare" for one in starts)
        assert starts[1]["summary"]["address"] == opened["publicUrl"]
        assert act(home, "tunnel.stop", provider="cloudflare", state="running")["effect"] == "confirmed"
