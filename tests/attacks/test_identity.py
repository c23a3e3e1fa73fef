"""No process that this service started is the owner, or anyone: at no entry, by no way, under no boundary (findings S1, B2)."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attacks.ground import told_to_the_owner
from computer_linker import home as places
from support.road import folder_scope
from support.service import TOKEN, Service, serving, wait_for

ATTACK = Path(__file__).parents[1] / "fixtures" / "identity_attack.py"
SECRET = "SECRET-OF-ANOTHER-SCOPE"
BOUNDARIES = ("bubblewrap", "landlock", "none")
PRIVATE = ("socket_key", "socket_stream", "socket_no_key", "socket_apart", "socket_session", "bridge", "datagram")
TCP = (
    "http_token", "http_plain", "http_apart", "http_session", "healthz", "approvals", "register", "in_flight", "passed",
    "inherited", "gone", "reset", "abstract", "helper",
)  # fmt: skip


def ground(base: Path, boundary: str) -> dict[str, Any]:
    """Two scopes that run commands, with and without a network, and one that they must not reach."""
    priv = base / "priv"
    priv.mkdir()
    (priv / "key.txt").write_text(SECRET)
    root = base / "root"
    root.mkdir()
    shutil.copy(ATTACK, root / "attack.py")
    for folder in (base, base.parent, base.parent.parent):
        # The helper's user has a way to the program.
        folder.chmod(0o755)
    mode = "off" if boundary == "none" else "auto"
    policy = {"allowedCommands": ["*"], "confirm": "never", "sandbox": mode}
    scopes = [
        folder_scope(root, "cut", **policy, network=False),
        folder_scope(root, "net", **policy, network=True),
        folder_scope(priv, "priv", confirm="never"),
    ]
    # Landlock is what is left where no bubblewrap is found.
    env = {"PATH": "/nowhere"} if boundary == "landlock" else {}
    return {"scopes": scopes, "env": env, "bridge": {"scope": "priv", "workspaceRoot": str(base)}}


@pytest.fixture(scope="module", params=BOUNDARIES)
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Service]]:
    if request.param == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    base = tmp_path_factory.mktemp(f"identity-{request.param}")
    with serving(base, token=TOKEN, **ground(base, request.param)) as service:
        yield request.param, service


def attacked(service: Service, scope: str, way: str, port: int | None = None) -> dict[str, Any]:
    """Run the attack as a command of the scope; what it heard and reached."""
    key = (service.home / places.KEY_NAME).read_bytes().hex()
    facts = {"home": str(service.home), "port": port or service.port, "key": key, "token": service.token}
    command = ["/usr/bin/python3", "-I", "attack.py", way, json.dumps(facts)]
    link = service.http()
    try:
        answer = link.control(
            "computer_operation", scope=scope, op="command.run", target=".", input={"command": command}
        )
    finally:
        link.close()
    assert answer["ok"], json.dumps(answer)
    assert answer["data"]["exitCode"] == 0, json.dumps(answer["data"])
    told: dict[str, Any] = {"boundary": answer["data"]["boundary"], **json.loads(answer["data"]["stdout"])}
    return told


def refusals(service: Service) -> list[str]:
    """Why local callers were refused, as the history has it."""
    return [
        event.get("reason") or "" for event in told_to_the_owner(service) if event["principal"] == "unauthenticated"
    ]


def judge(service: Service, boundary: str, told: dict[str, Any]) -> None:
    assert told["boundary"].startswith(boundary), told
    assert (service.root.parent / "priv" / "key.txt").read_text() == SECRET, told
    heard = "".join(told["heard"])
    assert '"ok":true' not in heard.replace(" ", "") and '"result"' not in heard and SECRET not in heard, told
    assert "HTTP/1.1" not in heard or "HTTP/1.1 403 " in heard, told
    assert '"status"' not in heard and "client_id" not in heard and "<html" not in heard, told
    if told["reached"]:
        # A few of a kind a minute are written, so that nobody fills the history; at least one is.
        wait_for(lambda: any("started_by_the_service" in rule for rule in refusals(service)), step_s=0.2)


@pytest.mark.parametrize("network", ["cut", "net"])
@pytest.mark.parametrize("way", [*PRIVATE, *TCP])
def test_a_command_is_no_one(held: tuple[str, Service], network: str, way: str) -> None:
    boundary, service = held
    (service.root.parent / "priv" / "key.txt").write_text(SECRET)
    told = attacked(service, network, way)
    judge(service, boundary, told)
    if boundary != "none" and (way in PRIVATE or network == "cut"):
        assert not told["reached"], told
    if boundary == "none" or (network == "net" and way in TCP):
        # Landlock alone has no sockets but those of the network.
        assert told["reached"] or way in ("helper", "datagram", "abstract"), told


@pytest.mark.parametrize("way", ["http_plain", "http_apart", "gone", "reset", "in_flight", "socket_key"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_where_no_token_is_asked_for_a_command_is_no_one_either(tmp_path: Path, boundary: str, way: str) -> None:
    """`sandbox: off` has the network whatever the policy says; the others are not run with it there (test_open_door)."""
    with serving(tmp_path, **ground(tmp_path, boundary)) as service:
        told = attacked(service, "cut", way)
        judge(service, boundary, told)
        assert bool(told["reached"]) is (boundary == "none")


def test_a_connection_that_an_honest_client_opens_while_commands_run_is_answered(held: tuple[str, Service]) -> None:
    """Also by a program the service has never seen, and while commands knock themselves."""
    _, service = held
    sleeping = {"command": ["/bin/sleep", "60"]}
    link = service.http()
    ids = []
    try:
        for _ in range(3):
            started = link.control("computer_operation", scope="net", op="command.start", target=".", input=sleeping)
            ids.append(started["data"]["processId"])
        code = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())"
        for _ in range(3):
            asked = subprocess.run(
                [sys.executable, "-I", "-c", code, f"{service.base}/healthz"],
                capture_output=True,
                text=True,
                timeout=30,
            )
            assert asked.stdout.strip() == '{"status":"ok"}', asked.stderr
            fresh = service.http()
            assert "machineName" in json.dumps(fresh.control("get_computer_info"))
            fresh.close()
    finally:
        for handle in ids:
            link.control("computer_operation", scope="net", op="process.stop", target=handle)
        link.close()


def test_one_refused_command_is_one_event(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN, **ground(tmp_path, "none")) as service:
        attacked(service, "net", "http_token")
        attacked(service, "net", "socket_key")
        noted = wait_for(
            lambda: [event for event in told_to_the_owner(service) if event["principal"] == "unauthenticated"]
        )
    assert [event["reason"] for event in noted] == ["started_by_the_service"] * 2
    assert not [event for event in noted if event["ok"]]


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_the_key_is_closed_to_files_and_commands_where_the_state_lies_in_a_root(tmp_path: Path, sandbox: str) -> None:
    scopes = [folder_scope(tmp_path, "all", allowedCommands=["*"], confirm="never", sandbox=sandbox)]
    with serving(tmp_path, token=TOKEN, scopes=scopes) as service:
        key = service.home / places.KEY_NAME
        assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32
        link = service.http()
        for op, target in (("file.read", "home/owner.key"), ("file.stat", "home/owner.key"), ("file.list", "home")):
            answer = link.control("computer_operation", scope="all", op=op, target=target)
            assert not answer["ok"], answer
        command = {"command": ["/usr/bin/python3", "-c", "print(open('home/owner.key', 'rb').read().hex())"]}
        ran = link.control("computer_operation", scope="all", op="command.run", target=".", input=command)
        # Without a boundary a command has the user's own rights: it may read the key, and is no one with it all the same.
        if sandbox == "auto":
            assert key.read_bytes().hex() not in json.dumps(ran)
        link.close()


_SOCKETS = """
import ctypes, json, socket
def tried(act):
    try:
        act()
        return 0
    except OSError as error:
        return error.errno
def uring():
    if ctypes.CDLL(None, use_errno=True).syscall(425, 1, ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), "")
print(json.dumps({
    "unix": tried(lambda: socket.socket(socket.AF_UNIX)),
    "pair": tried(lambda: socket.socketpair()),
    "packets": tried(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)),
    "datagrams": tried(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
    "raw": tried(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)),
    "tcp": tried(lambda: socket.socket(socket.AF_INET)),
    "uring": tried(uring),
    "name": socket.gethostbyname("localhost"),
}))
"""


@pytest.mark.parametrize("network", ["cut", "net"])
def test_under_landlock_no_path_can_be_connected_to_and_the_network_is_as_granted(tmp_path: Path, network: str) -> None:
    """B2: Landlock does not hold connect() to a path."""
    with serving(tmp_path, token=TOKEN, **ground(tmp_path, "landlock")) as service:
        link = service.http()
        command = {"command": ["/usr/bin/python3", "-I", "-c", _SOCKETS]}
        ran = link.control("computer_operation", scope=network, op="command.run", target=".", input=command)["data"]
        link.close()
    assert ran["boundary"].startswith("landlock"), ran
    found = json.loads(ran["stdout"])
    assert found == {
        "unix": 1, "pair": 0, "packets": 0, "datagrams": 1, "raw": 1, "tcp": 1 if network == "cut" else 0, "uring": 1,
        "name": "127.0.0.1",
    }  # fmt: skip
