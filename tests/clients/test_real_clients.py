"""Codex, Claude Code, Gemini CLI and opencode themselves, set up by `client setup --write`, each doing one real tool call.

The models they talk to are scripted and on loopback; the clients, the settings they read and the service are real.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support import node
from support.events import owners_history
from support.models.chat import chat_model
from support.models.generate import generate_model
from support.models.messages import messages_model
from support.models.responses import responses_model
from support.models.scripted import Model
from support.oauth import Browser, consent
from support.service import PROGRAM, TOKEN, Service, serving

pytestmark = pytest.mark.clients
WORD = "a-word-only-the-file-has"
READ = {"scope": "app", "op": "file.read", "target": "notes.txt"}
LONG = {"scope": "app", "op": "file.read", "target": "long.log"}
"""A log of 9000 short lines: longer than any client hands to its model."""
DONE = {"say": "done"}
PROMPT = "Read notes.txt."


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    # The split surface has a tool that says it only observes: a client that nobody watches may call it unasked.
    place = tmp_path_factory.mktemp("clients")
    with serving(place, token=TOKEN, env={"COMPUTER_LINKER_MCP_TOOL_SURFACE": "split"}) as running:
        (running.root / "notes.txt").write_text(f"{WORD}\n")
        (running.root / "long.log").write_text("".join(f"request {number} served\n" for number in range(9000)))
        yield running


@pytest.fixture
def user() -> Iterator[Path]:
    """A home folder; outside the temporary folder, where Codex would not work."""
    home = Path(tempfile.mkdtemp(prefix="client-home-", dir="/var/tmp"))
    yield home
    shutil.rmtree(home, ignore_errors=True)


def environment_of(user: Path, **more: str) -> dict[str, str]:
    (user / "work").mkdir(exist_ok=True)
    return {"HOME": str(user), "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", "NO_COLOR": "1", **more}


def set_up(service: Service, user: Path, name: str, *words: str) -> None:
    env = {**os.environ, **environment_of(user), "COMPUTER_LINKER_HOME": str(service.home)}
    command = [*PROGRAM, "client", "setup", name, "--write", *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


def run(user: Path, command: list[str], **env: str) -> str:
    done = subprocess.run(
        command, cwd=user / "work", env=environment_of(user, **env), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def check(service: Service, model: Model, client: str) -> None:
    """The model was told what the file says, and the history knows who read it."""
    assert WORD in model.said_to(), json.dumps(model.requests[-1])[-3000:]
    events = [one for one in owners_history(service.home) if one["scope"] == "app"]
    assert events[0]["op"] == "file.read" and client in str(events[0]["client"]).lower(), events


def check_page(model: Model, cut_note: str) -> None:
    """The page of the long log reached the model as it was sent: its client cut nothing off and added no note."""
    seen = json.dumps(model.requests[-1])
    assert "long.log, 178890 bytes, goes on: " in seen and cut_note not in seen, seen[-3000:]
    page = seen.partition("long.log, 178890 bytes, goes on: startLine ")[2]
    after = int(page.partition(":")[0])
    assert after > 1500, "the page is not as long as the profile lets it be"
    assert all(f"request {number} served" in page for number in range(after - 1)), "a line of the page is missing"


def codex_settings(user: Path, model: Model) -> None:
    """A Codex that asks the scripted model, and keeps what it gets by signing in beside its settings."""
    (user / ".codex").mkdir()
    (user / ".codex" / "config.toml").write_text(
        'model = "mock-model"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n'
        'mcp_oauth_credentials_store = "file"\n'
        f'[model_providers.scripted]\nname = "scripted"\nbase_url = "http://127.0.0.1:{model.port}/v1"\n'
        'wire_api = "responses"\nrequest_max_retries = 0\n[analytics]\nenabled = false\n'
    )


def test_codex_over_stdio(service: Service, user: Path) -> None:
    program = node.needed(node.codex)
    call = {"call": "computer_observe", "namespace": "mcp__computer_linker", "args": READ}
    with responses_model(call, DONE) as model:
        codex_settings(user, model)
        set_up(service, user, "codex")
        run(user, [str(program), "exec", "--json", "--skip-git-repo-check", PROMPT], CODEX_HOME=str(user / ".codex"))
        check(service, model, "codex")


def test_codex_signs_in_and_calls_over_http(service: Service, user: Path) -> None:
    """The whole of OAuth by a real client: it registers, opens the consent page, takes the code and the token, and calls."""
    program = node.needed(node.codex)
    call = {"call": "computer_observe", "namespace": "mcp__computer_linker", "args": READ}
    with responses_model(call, DONE) as model:
        codex_settings(user, model)
        set_up(service, user, "codex", "--over", "http")
        env = {"CODEX_HOME": str(user / ".codex")}
        # Its own client document is on a site that cannot be reached from here, so it registers.
        login = [str(program), "mcp", "login", "computer-linker", "--scopes", "linker:read,linker:write"]
        login += ["--oauth-client-registration", "dcr"]
        sign_in(service, user, login, **env)
        run(user, [str(program), "exec", "--json", "--skip-git-repo-check", PROMPT], **env)
        check(service, model, "codex")


def sign_in(service: Service, user: Path, command: list[str], **env: str) -> None:
    """Run a client's own sign-in, and be the browser for the address it prints."""
    process = subprocess.Popen(
        command, cwd=user / "work", env=environment_of(user, BROWSER="true", **env), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    late = threading.Timer(90, process.kill)
    late.start()
    try:
        said = ""
        for line in process.stdout:
            said += line
            if found := re.search(rf"{re.escape(service.base)}(/authorize\?\S+)", line):
                _, headers, page = consent(Browser(service.base), found.group(1))
                back = urlsplit(headers.get("location", ""))
                assert back.hostname in ("127.0.0.1", "localhost"), page
                assert Browser(f"http://{back.netloc}").send("GET", f"{back.path}?{back.query}")[0] == 200
        assert process.wait(30) == 0, said
    finally:
        late.cancel()
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_claude_code_over_stdio(service: Service, user: Path) -> None:
    program = node.needed(node.claude)
    tool = "mcp__computer-linker__computer_observe"
    with messages_model({"call": tool, "args": READ}, DONE) as model:
        set_up(service, user, "claude")
        run(
            user, [str(program), "-p", PROMPT, "--allowedTools", tool],
            ANTHROPIC_BASE_URL=f"http://127.0.0.1:{model.port}", ANTHROPIC_API_KEY="scripted", DISABLE_AUTOUPDATER="1",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )  # fmt: skip
        check(service, model, "claude")


def test_what_claude_mcp_add_wrote_is_seen_and_taken_back(service: Service, user: Path) -> None:
    """Its default is an entry for the folder it was called in, and that is what our own welcome tells people to type."""
    program = node.needed(node.claude)
    env = {**os.environ, **environment_of(user), "COMPUTER_LINKER_HOME": str(service.home)}

    def ours(*words: str) -> Any:
        done = subprocess.run(
            [*PROGRAM, "client", *words, "--json"], env=env, capture_output=True, text=True, timeout=240, check=True
        )
        return json.loads(done.stdout)

    run(user, [str(program), "mcp", "add", "computer-linker", "--", "computer-linker", "stdio"])
    found = next(client for client in ours("list")["clients"] if client["name"] == "claude")
    assert (found["connected"], found["projects"]) == (True, [str(user / "work")])
    assert ours("remove", "claude")["written"] is True
    found = next(client for client in ours("list")["clients"] if client["name"] == "claude")
    assert (found["connected"], found["projects"]) == (False, [])
    assert "computer-linker" not in run(user, [str(program), "mcp", "list"])


def test_gemini_over_http_with_the_token(service: Service, user: Path) -> None:
    program = node.needed(node.gemini)
    tool = "mcp_computer-linker_computer_observe"
    with generate_model({"call": tool, "args": LONG}, {"call": tool, "args": READ}, DONE) as model:
        (user / ".gemini").mkdir()
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (user / ".gemini" / "settings.json").write_text(json.dumps(settings, indent=2))
        (user / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(user / "work"): "TRUST_FOLDER"}))
        set_up(service, user, "gemini", "--over", "http", "--show-token")
        run(
            user, [*program, "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", PROMPT],
            GEMINI_API_KEY="scripted", GOOGLE_GEMINI_BASE_URL=f"http://127.0.0.1:{model.port}",
        )  # fmt: skip
        check(service, model, "")
        check_page(model, "Output too large")


@pytest.mark.parametrize("signs_in", [False, True], ids=["with the token", "signed in"])
def test_opencode_over_http(service: Service, user: Path, signs_in: bool) -> None:
    program = node.needed(node.opencode)
    tool = "computer-linker_computer_observe"
    with chat_model({"call": tool, "args": LONG}, {"call": tool, "args": READ}, DONE) as model:
        provider = {
            "npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": {"baseURL": f"http://127.0.0.1:{model.port}/v1", "apiKey": "scripted"},
            "models": {"mock-model": {"name": "mock-model"}},
        }  # fmt: skip
        folder = user / ".config" / "opencode"
        folder.mkdir(parents=True)
        settings = {"provider": {"scripted": provider}, "model": "scripted/mock-model", "autoupdate": False}
        (folder / "opencode.json").write_text(json.dumps(settings, indent=2))
        set_up(service, user, "opencode", "--over", "http", *([] if signs_in else ["--show-token"]))
        if signs_in:
            sign_in(service, user, [str(program), "mcp", "auth", "computer-linker"])
        run(user, [str(program), "run", "--format", "json", PROMPT])
        check(service, model, "")
        check_page(model, "tool-output")
