"""Each provider with a stand-in of its program: found, opened, asked, closed. The real programs cannot be had here."""

import json
import os
import socket
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from computer_linker.errors import ExecutionFailed, ProviderUnavailable
from computer_linker.tunnels.manual import check_address
from computer_linker.tunnels.supervisor import NAMES, contracts, detect_all, make, reach_of
from support import nginx
from support.service import TOKEN, is_alive, wait_for
from support.standins import digest
from support.tunnels import Bench

pytestmark = pytest.mark.anyio


def test_every_provider_says_what_it_runs_and_where_its_address_comes_from() -> None:
    assert [told["name"] for told in contracts()] == list(NAMES)
    assert all(told["lifecycle"] == ["detect", "status", "expose", "getPublicUrl", "stop"] for told in contracts())


def test_every_contract_names_its_modes_and_who_reaches_them() -> None:
    """001-104."""
    modes = {told["name"]: [(mode["name"], mode["reach"]) for mode in told["modes"]] for told in contracts()}
    assert modes == {
        "cloudflare": [("quick", "internet")],
        "cloudflare-named": [("named", "internet")],
        "tailscale": [("funnel", "internet")],
        "tailscale-serve": [("serve", "tailnet")],
        "openai": [("secure-mcp-tunnel", "provider")],
        "ssh": [("reverse", "server")],
        "manual": [("proxy", "internet")],
    }
    assert all(mode["command"] and mode["publicUrlSource"] for told in contracts() for mode in told["modes"])


async def test_a_quick_tunnel_gets_the_address_that_cloudflare_made_up(bench: Bench) -> None:
    program = bench.program("cloudflared")
    assert make("cloudflare", bench.around).detect().program == str(program)
    async with bench.supervised("cloudflare"):
        record = await bench.until("running")
        assert record.public_url == "https://stand-in-1.trycloudflare.com"
        (start,) = bench.starts()
        assert start["argv"][-2:] == ["--url", "http://127.0.0.1:39399"]
        assert "--no-autoupdate" in start["argv"]
        assert record.pid == start["pid"] and is_alive(start["pid"])
    assert not bench.running()
    assert bench.heard[-1].state == "stopped"


async def test_the_program_sees_little_of_our_environment(bench: Bench) -> None:
    bench.program("cloudflared")
    os.environ["STAND_IN_SECRET"] = "x"
    try:
        async with bench.supervised("cloudflare"):
            await bench.until("running")
    finally:
        del os.environ["STAND_IN_SECRET"]
    (start,) = bench.starts()
    assert set(start["env"]) <= {"PATH", "HOME", "LANG", "LC_CTYPE"}


async def test_a_named_tunnel_gets_its_token_by_no_argument(bench: Bench) -> None:
    bench.program("cloudflared")
    token = bench.home / "token"
    token.write_text("eyJhIjoiYWJjIn0=\n")
    token.chmod(0o600)
    bench.set(cloudflare={"hostname": "linker.example.com", "tokenFile": str(token)})
    async with bench.supervised("cloudflare-named"):
        record = await bench.until("running")
    assert record.public_url == "https://linker.example.com"
    (start,) = bench.starts()
    assert "TUNNEL_TOKEN" in start["env"] and start["argv"][-1] == "run"
    assert "eyJh" not in json.dumps(start["argv"])


async def test_a_named_tunnel_of_this_machine_is_run_by_its_name(bench: Bench) -> None:
    bench.program("cloudflared")
    bench.set(cloudflare={"hostname": "linker.example.com", "name": "desk"})
    async with bench.supervised("cloudflare-named"):
        await bench.until("running")
    assert bench.starts()[0]["argv"][-4:] == ["--url", "http://127.0.0.1:39399", "run", "desk"]


@pytest.mark.parametrize("mode", [0o644, 0o620])
async def test_a_token_that_others_can_read_is_refused(bench: Bench, mode: int) -> None:
    bench.program("cloudflared")
    token = bench.home / "token"
    token.write_text("eyJh")
    token.chmod(mode)
    bench.set(cloudflare={"hostname": "linker.example.com", "tokenFile": str(token)})
    async with bench.supervised("cloudflare-named"):
        refused = await bench.until("refused")
    assert refused.hint and "chmod 600" in refused.hint
    assert bench.starts() == []


async def test_a_token_that_clients_can_read_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.program("cloudflared")
    (tmp_path / "root").mkdir()
    token = tmp_path / "root" / "token"
    token.write_text("eyJh")
    token.chmod(0o600)
    (bench.home / "link").symlink_to(token)
    scope = {"id": "app", "type": "folder", "roots": [str(tmp_path / "root")], "capabilities": ["fs:read"]}
    bench.config = type(bench.config).from_wire({**bench.config.to_wire(), "scopes": [scope]})
    bench.set(cloudflare={"hostname": "linker.example.com", "tokenFile": str(bench.home / "link")})
    async with bench.supervised("cloudflare-named"):
        refused = await bench.until("refused")
    assert "scope app" in (refused.last_error or "")
    assert bench.starts() == []


async def test_a_funnel_has_the_address_of_the_machine_in_its_tailnet(bench: Bench) -> None:
    bench.program("tailscale")
    async with bench.supervised("tailscale"):
        assert (await bench.until("running")).public_url == "https://desktop.tail1234.ts.net"
    assert bench.starts()[0]["argv"] == ["funnel", "--yes", "39399"]
    assert not bench.running()


async def test_serve_has_the_same_address_inside_the_tailnet_alone(bench: Bench) -> None:
    """001-103."""
    bench.program("tailscale")
    async with bench.supervised("tailscale-serve"):
        assert (await bench.until("running")).public_url == "https://desktop.tail1234.ts.net"
    assert bench.starts()[0]["argv"] == ["serve", "--yes", "39399"]
    assert not bench.running()


async def test_serve_that_turns_out_public_is_not_called_open(bench: Bench) -> None:
    bench.program("tailscale")
    bench.misbehave("funnel_on")
    bench.connect_s = 1.0
    tunnel = make("tailscale-serve", bench.around)
    with pytest.raises(ExecutionFailed):
        await tunnel.expose(39_399)
    assert tunnel.public_url() is None and not bench.running()


@pytest.mark.parametrize("mode", ["not_enabled", "serve_only"])
async def test_a_funnel_that_is_not_public_is_not_called_open(bench: Bench, mode: str) -> None:
    bench.program("tailscale")
    bench.misbehave(mode)
    bench.connect_s = 1.0
    tunnel = make("tailscale", bench.around)
    with pytest.raises(ExecutionFailed) as refused:
        await tunnel.expose(39_399)
    # What the program asks of its user is passed on.
    assert mode != "not_enabled" or "https://login.tailscale.com/f/funnel" in refused.value.message
    assert tunnel.public_url() is None
    assert not bench.running()


async def test_the_openai_tunnel_has_an_id_and_no_address(bench: Bench) -> None:
    bench.use_openai()
    async with bench.supervised("openai"):
        record = await bench.until("running")
        assert (record.public_url, record.tunnel_id) == (None, "tunnel_0123456789abcdef0123456789abcdef")
        (start,) = bench.starts()
        command_line = Path(f"/proc/{start['pid']}/cmdline").read_bytes()
        assert b"sk-test" not in command_line and TOKEN.encode() not in command_line
    assert not bench.running()


async def test_an_openai_tunnel_that_lost_its_way_is_told(bench: Bench) -> None:
    bench.use_openai()
    async with bench.supervised("openai"):
        await bench.until("running")
        (bench.folder / "unready").touch()
        await bench.until("reconnecting")
        (bench.folder / "unready").unlink()
        await bench.until("running", count=2)
    assert len(bench.starts()) == 1


async def test_a_changed_tunnel_client_is_not_run(bench: Bench) -> None:
    program = bench.use_openai()
    program.write_text(program.read_text() + "\n# changed\n")
    async with bench.supervised("openai"):
        refused = await bench.until("refused")
    assert "SHA-256" in (refused.last_error or "")
    assert bench.starts() == []


async def test_a_tunnel_client_swapped_between_two_starts_is_not_run(bench: Bench) -> None:
    program = bench.use_openai()
    async with bench.supervised("openai"):
        await bench.until("running")
        other = program.with_name("other")
        other.write_text(
            program.read_text().replace("serve_forever", "serve_forever if True else server.serve_forever")
        )
        other.chmod(0o755)
        other.replace(program)
        os.kill(bench.starts()[0]["pid"], 9)
        refused = await bench.until("refused")
    assert "SHA-256" in (refused.last_error or "")
    assert len(bench.starts()) == 1


async def test_bytes_written_into_the_file_while_it_runs_are_not_what_runs(bench: Bench) -> None:
    """The checked bytes are copied and sealed: the file itself is not even open any more."""
    program = bench.use_openai()
    async with bench.supervised("openai"):
        await bench.until("running")
        pid = bench.starts()[0]["pid"]
        assert str(program).encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        with program.open("r+b") as file:
            file.write(b"#!/bin/false")
        assert is_alive(pid)


@pytest.mark.parametrize("missing", ["program", "sha256", "tunnelId", "apiKeyFile"])
async def test_an_openai_tunnel_that_lacks_something_says_what(bench: Bench, missing: str) -> None:
    bench.use_openai()
    bench.set(openai={missing: None})
    found = make("openai", bench.around).detect()
    assert not found.available and found.problem and found.remedy
    async with bench.supervised("openai"):
        await bench.until("refused")
    assert bench.starts() == []


async def test_tunnel_client_is_never_searched_for(bench: Bench) -> None:
    bench.program("tunnel-client")
    found = make("openai", bench.around).detect()
    assert not found.available


async def test_nothing_opens_without_an_owner_token(bench: Bench) -> None:
    bench.program("cloudflared")
    bench.without_token()
    async with bench.supervised("cloudflare"):
        refused = await bench.until("refused")
    assert "owner token" in (refused.last_error or "")
    assert bench.starts() == []


async def test_a_program_inside_a_scope_is_never_run(bench: Bench) -> None:
    bench.program("cloudflared")
    scope = {"id": "app", "type": "folder", "roots": [str(bench.programs)], "capabilities": ["fs:read"]}
    bench.config = type(bench.config).from_wire({**bench.config.to_wire(), "scopes": [scope]})
    found = make("cloudflare", bench.around).detect()
    assert (found.available, found.program) == (False, None)
    async with bench.supervised("cloudflare"):
        await bench.until("refused")
    assert bench.starts() == []


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o644])
async def test_a_program_that_others_could_change_or_that_cannot_run_is_refused(bench: Bench, mode: int) -> None:
    bench.program("cloudflared").chmod(mode)
    async with bench.supervised("cloudflare"):
        await bench.until("refused")
    assert bench.starts() == []


@pytest.mark.parametrize("above", [0, 1])
async def test_a_program_below_a_folder_anyone_may_write_is_refused(bench: Bench, above: int) -> None:
    bench.programs = bench.programs / "bin"
    bench.program("cloudflared")
    [bench.programs, bench.programs.parent][above].chmod(0o777)
    async with bench.supervised("cloudflare"):
        await bench.until("refused")
    assert bench.starts() == []


async def test_what_is_not_installed_is_told_with_a_remedy(bench: Bench) -> None:
    found = {detected.name: detected for detected in detect_all(bench.around)}
    assert set(found) == set(NAMES)
    assert not any(detected.available for detected in found.values())
    assert all(detected.problem and detected.remedy for detected in found.values())
    with pytest.raises(ProviderUnavailable):
        await make("tailscale", bench.around).expose(1)


async def test_a_manual_proxy_needs_an_https_address(bench: Bench) -> None:
    for url in (None, "http://linker.example.com"):
        bench.config = bench.config.model_copy(update={"public_base_url": url})
        assert not make("manual", bench.around).detect().available


async def test_a_manual_address_that_leads_nowhere_is_not_called_open(bench: Bench) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        bench.config = bench.config.model_copy(
            update={"public_base_url": f"https://localhost:{taken.getsockname()[1]}"}
        )
        async with bench.supervised("manual"):
            waiting = await bench.until("waiting")
    assert "does not answer" in (waiting.last_error or "")
    assert all(record.public_url is None for record in bench.heard)


@pytest.mark.skipif(nginx.program() is None, reason="not installed: nginx")
async def test_a_proxy_that_goes_away_is_told(bench: Bench, tmp_path: Path) -> None:
    front = nginx.front(tmp_path / "front")
    body = json.dumps({"resource": f"{front.base}/mcp"}).replace('"', '\\"')
    answer = f'location / {{ default_type application/json; return 200 "{body}"; }}'
    bench.config = bench.config.model_copy(update={"public_base_url": front.base})
    os.environ["SSL_CERT_FILE"] = str(front.authority.file)
    try:
        async with AsyncExitStack() as stack:
            proxy = stack.enter_context(ExitStack())
            proxy.enter_context(nginx.proxying(front, 1, answer.replace("location /", "location /.well-known")))
            await stack.enter_async_context(bench.supervised("manual"))
            assert (await bench.until("running")).public_url == front.base
            proxy.close()
            waiting = await bench.until("waiting")
    finally:
        del os.environ["SSL_CERT_FILE"]
    assert "does not answer" in (waiting.last_error or "")


async def test_asking_tells_an_unknown_name_from_a_closed_port(bench: Bench) -> None:
    with pytest.raises(ExecutionFailed, match="not known"):
        await check_address("http://no-such-name.invalid")


def test_the_digest_in_the_tests_is_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"abc")
    assert digest(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


async def test_the_owner_token_that_goes_away_closes_the_tunnel(bench: Bench) -> None:
    bench.program("cloudflared")
    async with bench.supervised("cloudflare"):
        await bench.until("running")
        bench.without_token()
        await bench.until("refused")
        assert not bench.running()


async def test_a_new_owner_token_reaches_the_openai_tunnel_by_a_new_start(bench: Bench) -> None:
    bench.use_openai()
    async with bench.supervised("openai"):
        await bench.until("running")
        bench.config = bench.config.model_copy(update={"owner_token": "another-owner-token-0123456789"})
        await bench.until("running", count=2)
    assert len(bench.starts()) == 2
    wait_for(lambda: not bench.running())


@pytest.mark.parametrize(
    ("name", "url", "reach"),
    [
        ("cloudflare", "https://a.example", "internet"),
        ("tailscale-serve", "https://me.tail.example", "tailnet"),
        ("ssh", "http://127.0.0.1:8022", "server"),
        ("ssh", "https://linker.example", "internet"),
        ("openai", None, "provider"),
    ],
)
def test_who_reaches_an_open_tunnel(name: str, url: str | None, reach: str) -> None:
    assert reach_of(name, url) == reach
