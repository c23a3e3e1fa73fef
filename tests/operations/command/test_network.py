"""Commands of a scope with a list of hosts: what they reach, what they do not, and what the history keeps of it."""

import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.audit.wording import outcome, what
from computer_linker.computer.local.linux.processes import LinuxProcesses
from computer_linker.model.network import PROXY_PORT
from computer_linker.providers.network.gates import Gates
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.serve.owner_calls import OwnerCalls
from support.certificates import Authority
from support.named_server import NamedServer, free_port, named_server, talker
from support.road import LOCAL, OWNER, Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio
NAME = "packages.example.org"


@pytest.fixture(scope="module")
def server() -> Iterator[NamedServer]:
    with named_server() as made:
        yield made


@pytest.fixture
async def road(tmp_path: Path, server: NamedServer) -> AsyncIterator[Road]:
    port = server.port
    network = [f"{NAME}:{port}=127.0.0.1", f"localhost:{port}", f"*.example.net:{port}", f"127.0.0.3:{port}"]
    async with Road.open(tmp_path, [listing(tmp_path, network)]) as opened:
        yield opened


def listing(tmp_path: Path, network: list[str], **policy: Any) -> dict[str, Any]:
    (tmp_path / "root").mkdir(exist_ok=True)
    return folder_scope(tmp_path / "root", allowedCommands=["*"], network=network, sandbox="required") | {
        "policy": {"allowedCommands": ["*"], "network": network, "sandbox": "required", **policy}
    }


async def run(road: Road, script: str) -> dict[str, Any]:
    return await road.call("command.run", ".", input={"command": ["sh", "-c", script]})


async def connections(road: Road, count: int) -> list[dict[str, Any]]:
    """The summaries of the newest connections, oldest first, once there are as many."""
    with anyio.fail_after(60):
        while True:
            events = (await road.data("history.last", "", options={"limit": 50}))["events"]
            found = [event["summary"] for event in events if event["op"] == "network.connect"][::-1]
            if len(found) >= count:
                return found


@pytest.mark.parametrize(
    "options",
    ["", "--noproxy '*'", "-p", f"--socks5-hostname 127.0.0.1:{PROXY_PORT}", "--noproxy '*' -4", "--http1.0"],
)
async def test_an_allowed_host_is_reached_with_and_without_a_proxy(
    road: Road, server: NamedServer, options: str
) -> None:
    ran = await run(road, f"curl -sS {options} http://{NAME}:{server.port}/x")
    assert ran["data"]["stdout"] == f"Hello {NAME}:{server.port} /x 0", ran
    assert ran["warnings"] == [] and "network" in ran["data"]["boundary"]
    (seen,) = await connections(road, 1)
    assert (seen["program"], seen["host"], seen["port"], seen["verdict"]) == ("sh", NAME, server.port, "allowed")
    assert seen["sentBytes"] > 50 and seen["receivedBytes"] >= len(ran["data"]["stdout"])


@pytest.mark.parametrize("options", ["", "--noproxy '*'", "-p", f"--socks5-hostname 127.0.0.1:{PROXY_PORT}"])
async def test_another_host_is_not_reached_and_the_refusal_names_it(
    road: Road, server: NamedServer, options: str
) -> None:
    before = len(server.seen)
    ran = await run(road, f"curl -sS {options} http://other.example.org:{server.port}/x")
    assert "Hello" not in ran["data"]["stdout"] and len(server.seen) == before
    (warning,) = ran["warnings"]
    assert "refused other.example.org" in warning and "scope allow-host app other.example.org" in warning
    (seen,) = await connections(road, 1)
    assert (seen["host"], seen["verdict"]) == ("other.example.org", "refused")
    (event,) = [one for one in (await road.data("history.last", ""))["events"] if one["op"] == "network.connect"]
    assert (event["ok"], event["decision"], event["errorCode"]) == (False, "deny", "permission_denied")
    assert what(event) in (
        "tried to connect to other.example.org",
        f"tried to connect to other.example.org:{server.port}",
    )
    assert outcome(event) == "refused: not in the list of hosts"


async def test_this_machine_is_reached_only_where_it_is_listed(road: Road, server: NamedServer) -> None:
    ran = await run(road, f"curl -sS http://localhost:{server.port}/; curl -sS http://[::1]:{server.port}/")
    assert ran["data"]["stdout"].count("Hello") == 2, ran


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", NAME])
async def test_a_port_that_only_the_kernel_refused_is_named_too(road: Road, host: str) -> None:
    with talker() as port:
        ran = await run(
            road, f"curl -sS --noproxy '*' http://{host}:{port}/; curl -sS --noproxy '*' http://{host}:{port}/"
        )
    assert ran["data"]["exitCode"] == 7
    place = f"{NAME if host == NAME else 'localhost'}:{port}"
    (warning,) = ran["warnings"]
    assert f"refused {place}" in warning and f"scope allow-host app {place}" in warning
    (seen,) = await connections(road, 1)
    assert (seen["host"], seen["port"], seen["verdict"]) == (place.partition(":")[0], port, "refused")


async def test_a_command_that_waits_for_its_own_server_is_refused_nothing(road: Road) -> None:
    port = free_port()
    script = f"""python3 - <<'END'
import socket
def tried(host):
    try: return socket.create_connection((host, {port}))
    except ConnectionRefusedError: return None
assert tried("127.0.0.1") is None and tried("::1") is None
server = socket.create_server(("127.0.0.1", {port}))
assert tried("::1") is None and tried("127.0.0.1") is not None
END"""
    ran = await run(road, script)
    assert ran["data"]["exitCode"] == 0 and ran["warnings"] == [], ran


async def test_a_program_serves_and_uses_its_own_ports_inside(road: Road) -> None:
    script = """python3 - <<'END'
import socket
a = socket.create_server(("127.0.0.1", 0)); b = socket.create_connection(a.getsockname()); b.sendall(b"x"); print(a.accept()[0].recv(1))
END"""
    assert (await run(road, script))["data"]["stdout"] == "b'x'\n"


@pytest.mark.parametrize(
    "code",
    [
        "socket.create_connection(('127.0.0.1', OPEN), 3)",
        "socket.create_connection(('10.255.255.1', 80), 3)",
        "socket.create_connection(('2001:db8::1', 80), 3)",
        "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.connect(('10.255.255.53', 53)); one.send(b'x'); one.recv(1)",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "socket.socket(socket.AF_UNIX).connect('\\0/tmp/.X11-unix/X0')",
        "fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8916, b'lo:9'.ljust(16, b'\\0') + b'\\2\\0\\0\\0\\n\\0\\0\\1'.ljust(24, b'\\0'))",
    ],
)
async def test_there_is_no_network_beside_the_gate(road: Road, code: str) -> None:
    with talker() as port:
        text = f"import socket, fcntl\ntry:\n    {code.replace('OPEN', str(port))}\n    print('REACHED')\nexcept OSError as error:\n    print('no', error)"
        ran = await road.data("command.run", ".", input={"command": ["python3", "-c", text]})
        assert ran["stdout"].startswith("no"), ran


async def test_other_names_do_not_exist_and_are_asked_of_no_one(road: Road) -> None:
    ran = await run(road, "getent hosts secret-data.evil.example; getent hosts x.example.net; cat /etc/resolv.conf")
    assert "198.18." in ran["data"]["stdout"] and "evil" not in ran["data"]["stdout"]
    assert "nameserver 127.0.0.1\n" in ran["data"]["stdout"]
    assert [seen["host"] for seen in await connections(road, 1)] == ["secret-data.evil.example"]


async def test_a_name_that_is_private_is_refused_with_the_entry_that_would_allow_it(tmp_path: Path) -> None:
    name = os.uname().nodename.lower()
    async with Road.open(tmp_path, [listing(tmp_path, [f"{name}:80"])]) as road:
        ran = await run(road, f"curl -sS http://{name}/")
        assert "private address" in str(ran["warnings"]) or "did not answer" in ran["data"]["stdout"]


async def test_tls_to_an_allowed_name_is_end_to_end(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with named_server(authority.certificate(NAME)) as server:
        async with Road.open(tmp_path, [listing(tmp_path, [f"{NAME}:{server.port}=127.0.0.1"])]) as road:
            (road.root / "authority.crt").write_bytes(authority.file.read_bytes())
            for options in ("", "--noproxy '*'"):
                ran = await run(road, f"curl -sS --cacert authority.crt {options} https://{NAME}:{server.port}/")
                assert ran["data"]["stdout"].startswith(f"Hello {NAME}"), ran["data"]


async def test_a_server_that_speaks_first_is_understood(tmp_path: Path) -> None:
    with talker() as port:
        async with Road.open(tmp_path, [listing(tmp_path, [f"mail.example.org:{port}=127.0.0.1"])]) as road:
            code = f"import socket; s = socket.create_connection(('mail.example.org', {port}), 9); print(s.recv(99)); s.sendall(b'abc'); print(s.recv(9))"
            ran = await road.data("command.run", ".", input={"command": ["python3", "-c", code]})
            assert ran["stdout"] == "b'220 speaks first\\r\\n'\nb'abc'\n", ran


async def test_a_started_process_names_its_refusals_and_ends_with_its_gate(road: Road, server: NamedServer) -> None:
    gates = road.app.services.use(Gates)
    command = ["sh", "-c", f"curl -sS http://evil.example.org/; curl -sS http://{NAME}:{server.port}/; echo; cat"]
    started = await road.data("command.start", ".", input={"command": command})
    options = {"waitSeconds": 20, "waitFor": "Hello"}
    read = await road.call("command.read", started["processId"], options=options)
    assert any("evil.example.org" in warning for warning in read["warnings"]), read
    assert gates.inner
    await road.data("command.stop", started["processId"], options={"signal": "kill"})
    await until(lambda: not gates.inner)


async def test_what_the_owner_takes_is_refused_at_once(tmp_path: Path, server: NamedServer) -> None:
    entry = f"{NAME}:{server.port}=127.0.0.1"
    async with Road.open(tmp_path, [listing(tmp_path, [entry, "localhost:9"])]) as road:
        script = f"curl -sS http://{NAME}:{server.port}/; read line; curl -sS http://{NAME}:{server.port}/; read line"
        started = await road.data("command.start", ".", input={"command": ["sh", "-c", script]})
        process = started["processId"]
        await road.data("command.read", process, options={"waitSeconds": 20, "waitFor": "Hello"})
        road.app.services.config.scopes[0].policy.network.remove(entry)  # type: ignore[union-attr]
        sent = await road.data(
            "command.send", process, input={"text": "\n"}, options={"waitFor": "not opened", "waitSeconds": 20}
        )
        assert sent and await road.data("command.list", "")


async def test_the_answer_says_which_hosts_there_are(road: Road, server: NamedServer) -> None:
    from computer_linker.service.info import computer_info

    info = json.loads(json.dumps(await computer_info(road.app, LOCAL, ["scopes"], None), default=str))
    assert f"localhost:{server.port}" in info["scopes"][0]["capabilityPolicy"]["network"]


async def test_where_nothing_can_hold_a_list_it_is_refused_or_cut_and_said(tmp_path: Path, server: NamedServer) -> None:
    scopes = [
        {**listing(tmp_path, [f"localhost:{server.port}"]), "id": "hard"},
        {**listing(tmp_path, [f"localhost:{server.port}"], sandbox="auto"), "id": "soft"},
        {**listing(tmp_path, [f"localhost:{server.port}"], sandbox="off"), "id": "open"},
    ]
    async with Road.open(tmp_path, scopes) as road:
        assert isinstance(road.app.computer.processes, LinuxProcesses)
        road.app.services.provide(Sandbox, Sandbox(road.app.computer, road.home, kinds=("landlock",)))
        probe = {"command": ["curl", "-sS", f"http://localhost:{server.port}/"]}
        before = len(server.seen)
        assert await road.code("command.run", ".", scope="hard", input=probe) == "provider_unavailable"
        soft = await road.call("command.run", ".", scope="soft", input=probe)
        assert soft["data"]["exitCode"] != 0 and "no network at all" in str(soft["warnings"])
        assert len(server.seen) == before
        opened = await road.call("command.run", ".", scope="open", input=probe)
        assert "list is not enforced" in str(opened["warnings"])


@pytest.mark.parametrize("port", [8443, 443], ids=["another port", "a listed port"])
async def test_an_address_without_the_proxy_is_named_too(tmp_path: Path, port: int) -> None:
    """Found: the program's network had no route for it, so the refusal was in no row and no warning."""
    async with Road.open(tmp_path, [listing(tmp_path, [f"{NAME}:443=127.0.0.1"])]) as road:
        script = f"for at in 192.0.2.7 203.0.113.9 8.8.8.8; do curl -sS -m 20 --noproxy '*' http://$at:{port}/; done"
        ran = await run(road, script)
        assert ran["data"]["exitCode"] != 0 and ran["data"]["stdout"] == "", ran
        for host in ("192.0.2.7", "203.0.113.9", "8.8.8.8"):
            entry = host if port == 443 else f"{host}:{port}"
            assert any(f"scope allow-host app {entry}" in warning for warning in ran["warnings"]), ran["warnings"]
        seen = await connections(road, 3)
        assert {(one["host"], one["port"], one["verdict"]) for one in seen} == {
            (host, port, "refused") for host in ("192.0.2.7", "203.0.113.9", "8.8.8.8")
        }
        events = (await road.data("history.last", ""))["events"]
        rows = {(what(event), outcome(event)) for event in events if event["op"] == "network.connect"}
        assert (f"tried to connect to 8.8.8.8:{port}", "refused: not in the list of hosts") in rows


@pytest.mark.parametrize(
    ("host", "shown"), [("other.example.org", "other.example.org:8443"), ("[2001:db8::1]", "'[2001:db8::1]:8443'")]
)
async def test_a_refused_host_is_shown_with_the_line_that_allows_it(road: Road, host: str, shown: str) -> None:
    await run(road, f"curl -sS -g http://{host}:8443/")
    await connections(road, 1)
    [event] = [one for one in (await road.data("history.last", ""))["events"] if one["op"] == "network.connect"]
    reply = await OwnerCalls(road.app.dispatcher).call("history.show", {"operation": event["operationId"]}, OWNER)
    assert f"computer-linker scope allow-host app {shown}" in reply.envelope["data"].commands


async def test_the_service_itself_is_refused_as_such_and_not_for_want_of_an_entry(tmp_path: Path) -> None:
    """Found: the row said `not in the list of hosts`, though no entry would allow it."""
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
        async with Road.open(tmp_path, [listing(tmp_path, [f"localhost:{port}"])]) as road:
            ran = await run(road, f"curl -sS http://localhost:{port}/")
            (warning,) = ran["warnings"]
            assert "it is this service itself" in warning and "allow-host" not in warning
            await connections(road, 1)
            events = (await road.data("history.last", ""))["events"]
            found = {outcome(event) for event in events if event["op"] == "network.connect"}
            assert found == {"refused: it is this service itself"}


async def test_the_only_device_of_a_programs_network_is_loopback(road: Road) -> None:
    """Every address is one of loopback inside, so that a connection to it is seen; none leads out."""
    ran = await run(road, "cat /proc/net/dev")
    assert [line.split(":")[0].strip() for line in ran["data"]["stdout"].splitlines()[2:]] == ["lo"], ran
