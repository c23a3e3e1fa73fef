"""Codex and Claude Code themselves, with nobody at them, against a scope that asks a person.

What they do with the question was observed here, of the versions that tests/support/node.py pins: both say that they can show
a form, and with nobody there Codex declines it (handshake era) and Claude Code cancels it (2026-07-28). Neither is a yes.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import commands, node
from support.models.messages import messages_model
from support.models.responses import responses_model
from support.models.scripted import Model, Step
from support.road import folder_scope
from support.service import PROGRAM, Service, serving, wait_for
from support.terminal_person import person_at_terminal

pytestmark = pytest.mark.clients

MAKE = {"scope": "app", "op": "file.create", "target": "made.txt", "input": {"content": "made\n"}}
DONE: Step = {"say": "done"}
CLIENTS = ("codex", "claude")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("asking")
    with serving(place, scopes=[folder_scope(place / "root", confirm="all")]) as running:
        yield running


@pytest.fixture
def made(service: Service) -> Iterator[Path]:
    """The file the clients are told to make."""
    file = service.root / "made.txt"
    file.unlink(missing_ok=True)
    yield file
    for asked in waiting(service):
        cli(service, "approvals", "deny", asked["id"])


@pytest.fixture
def user() -> Iterator[Path]:
    """A home folder; outside the temporary folder, where Codex would not work."""
    home = Path(tempfile.mkdtemp(prefix="client-home-", dir="/var/tmp"))
    (home / "work").mkdir()
    yield home
    shutil.rmtree(home, ignore_errors=True)


def cli(service: Service, *arguments: str) -> str:
    done = commands.command(service.home, *arguments)
    return done.stdout


def waiting(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cli(service, "approvals", "list", "--json"))["waiting"]
    return found


@contextmanager
def model_of(client: str, calls: int, *, hold: bool = False) -> Iterator[Model]:
    """A model that calls our tool so often, held before the last, and then ends its turn."""
    tool: Step = {"call": "mcp__computer-linker__computer_operation", "args": MAKE}
    if client == "codex":
        tool = {"call": "computer_operation", "namespace": "mcp__computer_linker", "args": MAKE}
    steps = [tool] * (calls - 1) + [{**tool, "hold": hold}, DONE]
    with (responses_model if client == "codex" else messages_model)(*steps) as model:
        yield model


def start(service: Service, client: str, user: Path, model: Model) -> "subprocess.Popen[str]":
    """The real client, which talks to the scripted model and to our service over stdio."""
    command, env = (_codex if client == "codex" else _claude)(service, user, model)
    plain = {"HOME": str(user), "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", "NO_COLOR": "1"}
    return subprocess.Popen(
        command, cwd=user / "work", env={**plain, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def _codex(service: Service, user: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    program = node.needed(node.codex)
    (user / ".codex").mkdir()
    server = {"command": PROGRAM[0], "args": [*PROGRAM[1:], "stdio"], "home": str(service.home)}
    (user / ".codex" / "config.toml").write_text(
        'model = "mock-model"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n'
        f'[model_providers.scripted]\nname = "scripted"\nbase_url = "http://127.0.0.1:{model.port}/v1"\n'
        'wire_api = "responses"\nrequest_max_retries = 0\n[analytics]\nenabled = false\n'
        # Codex itself is told to let the call through: whether it happens is then ours alone to ask.
        '[mcp_servers.computer-linker]\nrequired = true\ndefault_tools_approval_mode = "approve"\n'
        f"command = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n"
        f"[mcp_servers.computer-linker.env]\nCOMPUTER_LINKER_HOME = {json.dumps(server['home'])}\n"
        f"PYTHONPATH = {json.dumps(os.environ.get('PYTHONPATH', ''))}\n"
    )
    return [str(program), "exec", "--json", "--skip-git-repo-check", "Go."], {"CODEX_HOME": str(user / ".codex")}


def _claude(service: Service, user: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    program = node.needed(node.claude)
    env = {"COMPUTER_LINKER_HOME": str(service.home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    server = {"command": PROGRAM[0], "args": [*PROGRAM[1:], "stdio"], "env": env}
    (user / "mcp.json").write_text(json.dumps({"mcpServers": {"computer-linker": server}}))
    argv = [str(program), "-p", "Go.", "--mcp-config", str(user / "mcp.json"), "--strict-mcp-config"]
    return [*argv, "--allowedTools", "mcp__computer-linker__computer_operation"], {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}", "ANTHROPIC_API_KEY": "scripted", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }  # fmt: skip


def finish(client: "subprocess.Popen[str]") -> None:
    output, _ = client.communicate(timeout=120)
    assert client.returncode == 0, output[-3000:]


@pytest.mark.parametrize("client", CLIENTS)
def test_without_a_yes_nothing_happens_and_the_model_learns_how_to_get_one(
    service: Service, user: Path, made: Path, client: str
) -> None:
    with model_of(client, 1) as model:
        finish(start(service, client, user, model))
    told = model.said_to()
    assert "confirm_required" in told and "computer-linker approvals allow ask_" in told
    assert "A person said no" not in told, "nobody was there to say it"
    assert not made.exists()
    assert waiting(service) == [], "the client has left, and its request with it"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("key", ["y", "n"])
def test_a_person_at_the_terminal_decides_for_the_real_client(
    service: Service, user: Path, made: Path, client: str, key: str
) -> None:
    with person_at_terminal(service, key) as person, model_of(client, 1) as model:
        finish(start(service, client, user, model))
        assert person.answered == 1
    assert made.exists() is (key == "y")
    assert ("denied_by_person" in model.said_to()) is (key == "n")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_yes_given_afterwards_lets_the_same_call_pass_once(
    service: Service, user: Path, made: Path, client: str
) -> None:
    with model_of(client, 2, hold=True) as model:
        running = start(service, client, user, model)
        assert model.asked.wait(90), "the client never came back for its second call"
        assert not made.exists()
        [asked] = wait_for(lambda: waiting(service))
        assert "Allowed file.create" in cli(service, "approvals", "allow", asked["id"])
        model.let_go()
        finish(running)
    assert made.read_text() == "made\n"
    assert waiting(service) == []
