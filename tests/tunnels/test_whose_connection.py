"""The tunnel's program is started by the service, and comes in by its own port all the same; a command comes in nowhere."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.test_identity import SECRET, attacked, ground, judge
from computer_linker.tunnels.record import read
from support.service import TOKEN, Service, rpc, serving, wait_for
from support.standins import install

PUBLIC = "stand-in-1.trycloudflare.com"


@pytest.fixture(params=["bubblewrap", "none"])
def exposed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Service, int]]:
    tunnel = {"provider": "cloudflare", "cloudflare": {"program": str(install(tmp_path / "programs", "cloudflared"))}}
    with serving(tmp_path, token=TOKEN, tunnel=tunnel, **ground(tmp_path, request.param)) as service:
        wait_for(lambda: (record := read(service.home)) is not None and record.state == "running")
        record = read(service.home)
        assert record is not None and record.port is not None
        yield request.param, service, record.port


def forwarded(service: Service, port: int, host: str) -> bytes:
    """What the tunnel's program hears when it passes on a request with the right token."""
    body = json.dumps(rpc(1, "tools/list")).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    folder = service.home / "tunnel"
    (folder / "answer").unlink(missing_ok=True)
    (folder / "forward.new").write_bytes(f"{port}\n{head}".encode() + body)
    (folder / "forward.new").rename(folder / "forward")
    wait_for((folder / "answer").exists)
    return (folder / "answer").read_bytes()


def test_the_tunnel_comes_in_by_its_own_port_alone(exposed: tuple[str, Service, int]) -> None:
    _, service, door = exposed
    for _ in range(3):
        assert not forwarded(service, door, PUBLIC).startswith(b"HTTP/1.1 403 ")
    assert forwarded(service, service.port, f"127.0.0.1:{service.port}").startswith(b"HTTP/1.1 403 ")


def test_a_command_does_not_come_in_by_the_tunnels_port(exposed: tuple[str, Service, int]) -> None:
    boundary, service, door = exposed
    for way in ("http_token", "http_apart", "gone", "in_flight"):
        told = attacked(service, "net", way, door)
        assert told["reached"], told
        judge(service, boundary, told)
    assert (service.root.parent / "priv" / "key.txt").read_text() == SECRET
    assert not forwarded(service, door, PUBLIC).startswith(b"HTTP/1.1 403 ")
