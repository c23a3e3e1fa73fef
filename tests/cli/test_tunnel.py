"""The tunnel's commands as people and scripts see them, with no service running."""

import json
import subprocess
from pathlib import Path

import pytest

from support.commands import command
from support.service import PROGRAM, TOKEN, environment, write_config
from support.standins import digest, install


@pytest.fixture
def home(tmp_path: Path) -> Path:
    program = install(tmp_path / "programs", "cloudflared")
    write_config(tmp_path / "home", tmp_path / "root", token=TOKEN, tunnel={"cloudflare": {"program": str(program)}})
    return tmp_path / "home"


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command(home, *words)


def test_detect_runs_nothing_and_names_what_is_missing(home: Path) -> None:
    found = {told["name"]: told for told in json.loads(run(home, "tunnel", "detect", "--json").stdout)["providers"]}
    assert found["cloudflare"]["available"] and not found["openai"]["available"]
    assert "hostname" in found["cloudflare-named"]["problem"]
    assert not (home / "tunnel" / "starts.jsonl").exists()
    text = run(home, "tunnel", "detect")
    assert text.returncode == 0 and "cloudflared" in text.stdout


def test_status_says_that_there_is_none(home: Path) -> None:
    done = run(home, "tunnel", "status")
    assert (done.returncode, "none" in done.stdout) == (0, True)
    seen = json.loads(run(home, "tunnel", "status", "--json").stdout)
    assert seen["tunnel"] == {
        "provider": None, "state": "stopped", "publicUrl": None, "pid": None, "port": None, "output": [],
        "tunnelId": None, "since": None, "restarts": 0, "lastError": None, "hint": None, "retryAt": None,
    }  # fmt: skip
    assert len(seen["providerContracts"]) == 7 and seen["wished"] is None
    assert run(home, "tunnel", "status", "--check").returncode == 1


def test_details_and_doctor_have_a_line_on_it(home: Path) -> None:
    assert "tunnel" in run(home, "status", "--details").stdout
    assert "tunnel" not in run(home, "status").stdout
    assert "tunnel" in run(home, "doctor").stdout


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("--hostname", "https://x", "tunnel.cloudflare.hostname"),
        ("--hostname", "a b", "tunnel.cloudflare.hostname"),
        ("--name", "--config", "tunnel.cloudflare.name"),
        ("--sha256", "abc", "tunnel.openai.sha256"),
        ("--tunnel-id", "x; rm", "tunnel.openai.tunnelId"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_and_not_kept(home: Path, option: str, value: str, named: str) -> None:
    before = (home / "config.json").read_bytes()
    with subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0"], env=environment(home), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as service:
        try:
            assert service.stderr is not None and b"serving" in service.stderr.readline()
            done = run(home, "tunnel", "start", "cloudflare-named", f"{option}={value}")
            assert done.returncode == 1 and named in done.stderr
        finally:
            service.terminate()
            service.wait(30)
    assert (home / "config.json").read_bytes() == before


def test_what_was_named_is_kept_in_its_own_place_once_the_tunnel_is_open(home: Path, tmp_path: Path) -> None:
    client, key = install(tmp_path / "programs", "tunnel-client"), tmp_path / "key"
    key.write_text("sk-0123456789")
    key.chmod(0o600)
    before = (home / "config.json").read_bytes()
    openai = ["tunnel", "start", "openai", "--program", str(client)]
    with subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0"], env=environment(home), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as service:
        try:
            assert service.stderr is not None and b"serving" in service.stderr.readline()
            assert run(home, "tunnel", "start", "manual", "--program", str(client)).returncode == 2
            assert run(home, "tunnel", "start", "nope", "--port", "3945").returncode == 2
            assert run(home, *openai).returncode == 1, "it lacks a tunnel id"
            assert run(home, "tunnel", "start", "cloudflare", "--program", "/bin/false").returncode == 1
            assert (home / "config.json").read_bytes() == before and not (home / "tunnels.json").exists()
            named = ["--sha256", digest(client), "--tunnel-id", f"tunnel_{'0' * 32}", "--api-key-file", str(key)]
            opened = run(home, *openai, *named)
            assert (opened.returncode, opened.stdout.strip()) == (0, f"tunnel_{'0' * 32}"), opened.stderr
        finally:
            service.terminate()
            service.wait(30)
    kept = json.loads((home / "config.json").read_text())["tunnel"]
    assert (kept["provider"], kept["openai"]["program"]) == ("openai", str(client))
    assert kept["cloudflare"] == json.loads(before)["tunnel"]["cloudflare"]


def test_stop_without_a_service_takes_the_wish_back(home: Path) -> None:
    config = json.loads((home / "config.json").read_text())
    config["tunnel"]["provider"] = "cloudflare"
    (home / "config.json").write_text(json.dumps(config))
    assert run(home, "tunnel", "status").returncode == 1
    assert run(home, "tunnel", "stop").returncode == 0
    assert json.loads((home / "config.json").read_text())["tunnel"]["provider"] is None
    assert run(home, "tunnel", "status").returncode == 0
