"""OAuth sessions seen and ended from the command line, with real tokens over HTTP."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support import commands
from support.events import owners_history
from support.oauth import Browser, refresh, tokens
from support.service import (
    META,
    PROGRAM,
    TOKEN,
    Http,
    environment,
    modern_headers,
    rpc,
    serving,
    wait_for,
    write_config,
)
from support.sleepers import running


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return commands.command(home, "sessions", *words)


def listed(home: Path) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = json.loads(run(home, "list", "--json").stdout)["sessions"]
    return answer


def status_with(port: int, token: str) -> int:
    http = Http(port, token)
    try:
        return http.send("POST", "/mcp", rpc(1, "ping"))[0]
    finally:
        http.close()


def test_a_revoked_session_is_over_with_the_next_request(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        browser = Browser(service.base)
        client, one = tokens(browser)
        _, other = tokens(browser)
        assert status_with(service.port, one["access_token"]) != 401
        sessions = listed(service.home)
        assert len(sessions) == 2 and all(session["standing"] == "live" for session in sessions)
        shown = json.dumps(sessions)
        assert all(issued[name] not in shown for issued in (one, other) for name in ("access_token", "refresh_token"))
        mine = next(session["id"] for session in sessions if session["clientId"] == client)
        done = run(service.home, "revoke", mine, "--json")
        assert json.loads(done.stdout) == {"revoked": [mine], "stopped": 0, "notes": []}
        assert status_with(service.port, one["access_token"]) == 401
        assert refresh(browser, client, one["refresh_token"])[0] == 400
        assert status_with(service.port, other["access_token"]) != 401
        assert json.loads(run(service.home, "revoke", "--all", "--json").stdout)["revoked"]
        assert status_with(service.port, other["access_token"]) == 401
        assert listed(service.home) == []
        # The owner is not a session and stays.
        assert status_with(service.port, TOKEN) != 401


def test_a_session_ended_while_no_service_runs_stays_ended(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        home, (_, issued) = service.home, tokens(Browser(service.base))
    (session,) = listed(home)
    assert run(home, "revoke", session["id"]).returncode == 0
    assert issued["access_token"] not in (home / "oauth-state.json").read_text()
    assert listed(home) == []
    assert (home / "oauth-state.json").stat().st_mode & 0o777 == 0o600
    with serving(tmp_path, token=TOKEN) as service:
        assert status_with(service.port, issued["access_token"]) == 401


def test_a_new_owner_token_shows_in_the_list(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        tokens(Browser(service.base))
        write_config(service.home, service.root, token="another-owner-token-0123456789")
        assert [session["standing"] for session in listed(service.home)] == ["ended by a new owner token"]


def test_what_cannot_be_ended_is_said_and_nothing_ends(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        _, issued = tokens(Browser(service.base))
        assert run(service.home, "revoke", "session_nobody").returncode == 1
        assert run(service.home, "revoke").returncode == 2
        assert run(service.home, "revoke", "x", "--all").returncode == 2
        assert status_with(service.port, issued["access_token"]) != 401


def test_a_call_under_way_ends_with_its_session(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        _, issued = tokens(Browser(service.base), group=["linker:read", "linker:write", "linker:run"])
        (session,) = listed(service.home)
        marker = service.root / "began"
        command = {"command": ["/bin/sh", "-c", "touch began; sleep 300; touch ended"]}
        call = {
            "scope": "app",
            "op": "command.run",
            "target": ".",
            "input": command,
            "options": {"timeoutSeconds": 400},
        }
        http = Http(service.port, issued["access_token"])
        with ThreadPoolExecutor(1) as pool:
            params = {"name": "computer_operation", "arguments": call}
            body = rpc(1, "tools/call", {**params, "_meta": META})
            answer = pool.submit(http.send, "POST", "/mcp", body, modern_headers("tools/call", params))
            wait_for(lambda: marker.exists() or answer.done())
            assert not answer.done(), answer.result()
            assert run(service.home, "revoke", session["id"]).returncode == 0
            assert answer.result(timeout=30)[0] == 401
        http.close()
        assert not (service.root / "ended").exists()
        wait_for(lambda: "command.run" in json.dumps(owners_history(service.home, limit=5)))


def test_what_a_session_left_running_ends_with_it(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        browser = Browser(service.base)
        _, issued = tokens(browser, group=["linker:read", "linker:write", "linker:run"])
        (session,) = listed(service.home)
        command = {"command": ["sleep", "60.7303"]}
        params = {
            "name": "computer_operation",
            "arguments": {"scope": "app", "op": "command.start", "target": ".", "input": command},
        }
        http = Http(service.port, issued["access_token"])
        body = rpc(1, "tools/call", {**params, "_meta": META})
        assert b'"ok":true' in http.send("POST", "/mcp", body, modern_headers("tools/call", params))[1].replace(
            b"\\", b""
        )
        http.close()
        wait_for(lambda: running("7303"))
        assert run(service.home, "revoke", session["id"]).returncode == 0
        wait_for(lambda: not running("7303"))
        wait_for(lambda: "principal.end" in history(service.home))


def history(home: Path) -> str:
    """All that the owner is told."""
    words = [*PROGRAM, "history", "--json"]
    return subprocess.run(words, env=environment(home), capture_output=True, text=True, timeout=240, check=True).stdout
