"""Who may call over HTTP: the owner's token and nothing like it; without a token, only what truly comes from this machine."""

import json
import time
from pathlib import Path

import pytest

from support.service import META, TOKEN, Http, Service, modern_headers, rpc, serving, write_config
from support.waiting import wait_for

LIST = rpc(1, "tools/list", {"_meta": META})


def ask(service: Service, authorization: str | None, *, path: str = "/mcp", **headers: str) -> tuple[int, bytes, Http]:
    """Status and body of one request with exactly this credential."""
    link = Http(service.port)
    given = {**modern_headers("tools/list"), **headers}
    if authorization is not None:
        given["authorization"] = authorization
    status, body = link.send("POST", path, LIST, given)
    link.close()
    return status, body, link


@pytest.mark.parametrize(
    "authorization",
    [
        None, "", "Bearer", "Bearer ", f"Bearer {TOKEN[:8]}", f"Bearer {TOKEN}x", f"Bearer {TOKEN.upper()}",
        f"Bearer wrong, Bearer {TOKEN}", f"Basic {TOKEN}", TOKEN, "Bearer null", "Bearer None", "Bearer *",
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJvd25lciJ9.", f"Bearer {TOKEN} extra", f"Token {TOKEN}", "Bearer " + "x" * 5000,
        f"Bearer \"{TOKEN}\"",
    ],
)  # fmt: skip
def test_anything_but_the_token_is_refused_alike(authorization: str | None, guarded: Service) -> None:
    status, body, link = ask(guarded, authorization)
    assert status in (401, 429)
    assert TOKEN.encode() not in body and b"get_computer_info" not in body
    if status == 401:
        assert body == b'{"error":"A valid credential is needed."}'
        assert link.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("query", ["access_token", "token", "ownerToken", "authorization", "key"])
def test_the_query_string_never_authenticates_and_is_never_kept(query: str, guarded: Service) -> None:
    status, body, _ = ask(guarded, None, path=f"/mcp?{query}={TOKEN}")
    assert status in (401, 429)
    assert TOKEN.encode() not in body
    assert TOKEN not in guarded.log
    for file in (guarded.home / "audit").rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()


def test_the_token_opens_and_so_does_its_own_header(guarded: Service) -> None:
    assert ask(guarded, f"Bearer {TOKEN}")[0] == 200
    assert ask(guarded, f"bearer {TOKEN}")[0] == 200
    assert ask(guarded, None, **{"x-computer-linker-token": TOKEN})[0] == 200


def test_guessing_is_slowed_and_the_owner_is_not_locked_out(guarded: Service) -> None:
    answers = [ask(guarded, f"Bearer guess-{number}") for number in range(60)]
    statuses = [status for status, _, _ in answers]
    assert statuses[-1] == 429
    assert set(statuses) <= {401, 429}
    assert int(answers[-1][2].headers["retry-after"]) > 0
    assert ask(guarded, f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize(
    "header",
    [
        "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-server", "x-real-ip", "via",
        "cf-connecting-ip", "cf-ray", "true-client-ip", "x-client-ip", "x-original-host", "cdn-loop", "tailscale-user-login",
        "x-cluster-client-ip", "x-envoy-external-address", "client-ip", "x-originating-ip", "x-remote-addr", "x-azure-clientip",
        "x-amzn-trace-id", "cloudfront-viewer-address", "x-vercel-id", "x-nf-client-connection-ip", "x-arr-ssl", "akamai-origin-hop",
    ],
)  # fmt: skip
def test_without_a_token_a_forwarded_request_is_not_a_local_one(header: str, open_service: Service) -> None:
    assert ask(open_service, None)[0] == 200
    status, body, _ = ask(open_service, None, **{header: "127.0.0.1"})
    assert status in (401, 429)
    assert b"get_computer_info" not in body


def test_a_rotated_token_holds_from_the_next_request_on(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        link = service.http()
        link.initialize()
        assert link.legacy("tools/list")["result"]["tools"]
        fresh = "another-owner-token-0123456789abcdef"
        write_config(service.home, service.root, token=fresh)
        time.sleep(0.01)  # One look at the config holds for a millisecond.
        assert link.send("POST", "/mcp", rpc(5, "tools/list"), link.session_headers())[0] == 401
        link.token = fresh
        assert link.send("POST", "/mcp", rpc(6, "tools/list"), link.session_headers())[0] == 200
        link.close()


def test_while_the_config_is_broken_the_last_valid_one_is_in_force(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        link = service.http()
        config = service.home / "config.json"
        kept = config.read_text()
        config.write_text(kept[:-3])
        answer = wait_for(
            lambda: (seen := link.control("get_computer_info", include=["status"]))["status"]["warnings"] and seen
        )
        assert any("config.json:1:" in warning for warning in answer["status"]["warnings"])
        assert config.read_text() == kept[:-3]
        config.chmod(0o666)
        asking = ("POST", "/api/v1/control", {"action": "get_computer_info"})
        wait_for(lambda: link.send(*asking)[0] != 200)
        status, body = link.send(*asking)
        assert status == 503 and "other users" in json.loads(body)["error"]
        config.chmod(0o600)
        config.write_text(kept)
        assert link.control("get_computer_info", include=["identity"])["machineName"] == "test"
        link.close()


def test_a_session_belongs_to_the_principal_that_opened_it(guarded: Service) -> None:
    owner = guarded.http()
    owner.initialize()
    for session in ("0" * 32, "../" + "a" * 29, "x" * 4000):
        headers = {**owner.session_headers(), "mcp-session-id": session}
        assert owner.send("POST", "/mcp", rpc(2, "tools/list"), headers)[0] == 404
    stranger = Http(guarded.port)
    assert stranger.send("POST", "/mcp", rpc(2, "tools/list"), owner.session_headers())[0] in (401, 429)
    assert stranger.send("DELETE", "/mcp", None, owner.session_headers())[0] in (401, 429)
    assert owner.legacy("tools/list")["result"]["tools"]
    assert owner.send("DELETE", "/mcp", None, owner.session_headers())[0] == 200
    assert owner.send("POST", "/mcp", rpc(3, "tools/list"), owner.session_headers())[0] == 404
    stranger.close()
    owner.close()
