"""`client setup NAME --write` and `client remove NAME`: each client's own form, a backup, and every other byte as it was."""

import json
import os
import stat
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from computer_linker.cli.app import main
from computer_linker.client.stdio_client import StdioClient
from computer_linker.service.clients.catalog import known_clients
from computer_linker.service.clients.form import NAME, Client, User
from support.lines import own_service
from support.service import PROGRAM, TOKEN, environment, serving, write_config

Run = Callable[..., tuple[int, str, str]]
STARTS = [str(Path(sys.executable).parent / NAME), "stdio"]

FILES = {
    "claude": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "vscode": ".config/Code/User/mcp.json",
}


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A person's empty home folder; the state folder lies in it as usual."""
    write_config(tmp_path / "user" / ".computer-linker", tmp_path / "root", token=TOKEN, port=3939)
    return tmp_path / "user"


@pytest.fixture
def run(user: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in os.environ:
        if name.startswith(("XDG_", "CODEX", "CLAUDE", "COMPUTER_LINKER", "LOCALPORT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(user))

    def command(*words: str) -> tuple[int, str, str]:
        code = main(["client", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return command


def parsed(file: Path) -> Any:
    return tomllib.loads(file.read_text()) if file.suffix == ".toml" else json.loads(file.read_text())


def entry_in(name: str, file: Path) -> Any:
    value = parsed(file)
    for key in known_clients()[name].path:
        value = value[key]
    return value


def test_every_client_is_written_read_back_and_removed(run: Run, user: Path) -> None:
    assert set(known_clients()) == set(FILES)
    for name, place in FILES.items():
        file = user / place
        code, shown, said = run("setup", name, "--write")
        assert code == 0, said
        assert "+" in shown and NAME in shown
        entry = entry_in(name, file)
        assert (entry.get("command"), entry.get("args")) in [(STARTS[0], ["stdio"]), (STARTS, None)]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert TOKEN not in file.read_text() + shown + said
    listed = json.loads(run("list", "--json")[1])["clients"]
    assert [client["connected"] for client in listed] == [True] * len(FILES)
    for name, place in FILES.items():
        code, _, said = run("remove", name)
        assert code == 0 and "is without it from its next start on." in said and "asks you" not in said
        assert not (user / place).exists(), "a file that says nothing any more goes too"
    assert not (user / ".claude" / "settings.json").exists()


@pytest.mark.parametrize("name", [name for name in FILES if name != "claude-desktop"])
def test_a_client_that_is_to_sign_in_is_told_how(run: Run, user: Path, name: str) -> None:
    after = json.loads(run("setup", name, "--over", "http", "--json")[1])["after"]
    assert "owner token" in after and after.startswith(known_clients()[name].sign_in)
    with_token = json.loads(run("setup", name, "--over", "http", "--show-token", "--json")[1])
    assert with_token["after"] == json.loads(run("setup", name, "--json")[1])["after"] == known_clients()[name].after
    write_config(user / ".computer-linker", user.parent / "root", token=None, port=3939)
    assert "owner token" not in json.loads(run("setup", name, "--over", "http", "--json")[1])["after"]


OBSERVING = [
    f"mcp__computer-linker__{tool}" for tool in ("get_computer_info", "get_operation_history", "computer_observe")
]


def test_claude_code_gets_the_rules_for_reads_beside_its_own(run: Run, user: Path) -> None:
    settings = user / ".claude" / "settings.json"
    settings.parent.mkdir()
    own: dict[str, Any] = {"permissions": {"allow": ["Bash(ls)"], "deny": ["Read(./.env)"]}, "model": "opus"}
    settings.write_text(json.dumps(own, indent=2))
    before = settings.read_text()
    code, shown, said = run("setup", "claude", "--write")
    assert code == 0 and all(rule in shown for rule in OBSERVING), shown
    assert parsed(settings) == {**own, "permissions": {**own["permissions"], "allow": ["Bash(ls)", *OBSERVING]}}
    assert str(settings) in said, "where the file as it was is"
    assert json.loads(run("setup", "claude", "--write", "--json")[1])["written"] is False
    assert run("remove", "claude")[0] == 0
    assert parsed(settings) == json.loads(before)


def test_rules_that_cannot_be_written_leave_both_files_as_they_are(run: Run, user: Path) -> None:
    settings = user / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"allow": "all"}}')
    code, _, said = run("setup", "claude", "--write")
    assert code == 1 and "permissions.allow" in said
    assert settings.read_text() == '{"permissions": {"allow": "all"}}'
    assert not (user / FILES["claude"]).exists()


def test_without_write_nothing_is_written(run: Run, user: Path) -> None:
    # The state folder may record what it read; the client's settings are what is not written.
    before = {path for path in user.rglob("*") if ".computer-linker" not in path.parts}
    code, shown, said = run("setup", "cursor")
    assert code == 0 and NAME in shown and "Nothing was written" in said
    assert {path for path in user.rglob("*") if ".computer-linker" not in path.parts} == before


def test_a_second_write_changes_nothing_and_makes_no_backup(run: Run, user: Path) -> None:
    run("setup", "codex", "--write")
    before = {path.name for path in (user / ".codex").iterdir()}
    answer = json.loads(run("setup", "codex", "--write", "--json")[1])
    assert (answer["needed"], answer["written"], answer["backup"]) == (False, False, None)
    assert {path.name for path in (user / ".codex").iterdir()} == before


def test_over_http_the_token_is_written_only_when_asked_for(run: Run, user: Path) -> None:
    run("setup", "gemini", "--over", "http", "--write")
    assert entry_in("gemini", user / FILES["gemini"]) == {"httpUrl": "http://127.0.0.1:3939/mcp"}
    code, shown, _ = run("setup", "gemini", "--over", "http", "--show-token", "--write")
    assert code == 0 and TOKEN not in shown, "the diff never shows it"
    assert entry_in("gemini", user / FILES["gemini"])["headers"] == {"Authorization": f"Bearer {TOKEN}"}
    run("setup", "codex", "--over", "http", "--show-token", "--write")
    assert entry_in("codex", user / FILES["codex"]) == {
        "url": "http://127.0.0.1:3939/mcp",
        "bearer_token_env_var": "COMPUTER_LINKER_TOKEN",
        "http_headers": {"Computer-Linker-Tool-Surface": "split"},
    }
    code, _, said = run("setup", "claude-desktop", "--over", "http", "--write")
    assert code == 1 and "Connectors" in said and not (user / FILES["claude-desktop"]).exists()


def test_an_unknown_client_is_refused_by_name(run: Run) -> None:
    code, _, said = run("setup", "netscape", "--write")
    assert code == 2 and "claude-desktop" in said


JSON_BEFORE = [
    '{\n  "theme": "dark", // mine\n  "mcpServers": {\n    "other": {"command": "x"}\n  },\n  "last": [1, 2,],\n}\n',
    '{\n\t"theme": "dark"\n}',
    '{"mcpServers":{"other":{"command":"x"}},"z":1}',
    '{\r\n    "mcpServers": {\r\n        "a": {},\r\n        "b": {}\r\n    }\r\n}\r\n',
]


@pytest.mark.parametrize("text", JSON_BEFORE)
def test_json_with_comments_is_as_it_was_after_setup_and_removal(run: Run, user: Path, text: str) -> None:
    file = user / FILES["gemini"]
    file.parent.mkdir()
    file.write_bytes(text.encode())
    file.chmod(0o640)
    answer = json.loads(run("setup", "gemini", "--write", "--json")[1])
    assert Path(answer["backup"]).read_bytes() == text.encode()
    assert stat.S_IMODE(Path(answer["backup"]).stat().st_mode) == 0o600
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    changed = file.read_bytes().decode()
    document = known_clients()["gemini"].document
    assert document.get(changed, ("mcpServers", NAME))["args"] == ["stdio"]
    assert "// mine" in changed or "// mine" not in text
    assert run("remove", "gemini")[0] == 0
    assert file.read_bytes() == text.encode()


TOML_BEFORE = [
    'model = "o"\n\n[mcp_servers.other]\ncommand = "x" # mine\n\n[profiles.p]\nmodel = "y"\n',
    'model = "o"\ntext = """\n[not.a.table]\n"""\n',
    "",
]


@pytest.mark.parametrize("text", TOML_BEFORE)
def test_toml_is_as_it_was_after_setup_and_removal(run: Run, user: Path, text: str) -> None:
    file = user / FILES["codex"]
    file.parent.mkdir()
    file.write_text(text)
    assert run("setup", "codex", "--write")[0] == 0
    assert tomllib.loads(file.read_text()) == {
        **tomllib.loads(text),
        "mcp_servers": {
            **tomllib.loads(text).get("mcp_servers", {}),
            NAME: {
                "command": STARTS[0],
                "args": ["stdio"],
                "required": True,
                "env": {"COMPUTER_LINKER_MCP_TOOL_SURFACE": "split"},
            },
        },
    }
    assert run("remove", "codex")[0] == 0
    assert (file.read_text() if file.exists() else "") == text


def test_a_header_inside_toml_text_is_not_taken_for_the_entry(run: Run, user: Path) -> None:
    file = user / FILES["codex"]
    file.parent.mkdir()
    text = f'text = """\n[mcp_servers.{NAME}]\n"""\n'
    file.write_text(f'{text}[mcp_servers."{NAME}"]\ncommand = "old"\n')
    assert run("setup", "codex", "--write")[0] == 0
    assert entry_in("codex", file)["command"] == STARTS[0]
    assert file.read_text().startswith(text) and "old" not in file.read_text()
    assert run("remove", "codex")[0] == 0
    assert file.read_text() == text


UNSAFE = [
    ("gemini", '{"mcpServers": {"a": 1}, "mcpServers": {}}'),
    ("gemini", '{"mcpServers": []}'),
    ("gemini", '{"a": 1'),
    ("gemini", "[]"),
    ("gemini", '{"a": 1} trailing'),
    ("codex", "mcp_servers = { other = { command = 'x' } }\n"),
    ("codex", "model = \n"),
]


@pytest.mark.parametrize(("name", "text"), UNSAFE)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(run: Run, user: Path, name: str, text: str) -> None:
    file = user / FILES[name]
    file.parent.mkdir()
    file.write_text(text)
    code, shown, said = run("setup", name, "--write")
    assert code == 1 and "left as it is" in said and shown == ""
    assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_link_to_the_settings_stays_a_link(run: Run, user: Path) -> None:
    kept = user / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_text("{}\n")
    (user / ".cursor").mkdir()
    (user / FILES["cursor"]).symlink_to(kept)
    assert run("setup", "cursor", "--write")[0] == 0
    assert (user / FILES["cursor"]).is_symlink()
    assert NAME in json.loads(kept.read_text())["mcpServers"]


def test_each_system_has_its_own_places(tmp_path: Path) -> None:
    clients = known_clients()

    def place(client: Client, system: Any, **env: str) -> str:
        return client.file(User(tmp_path, env, system)).relative_to(tmp_path).as_posix()

    assert place(clients["vscode"], "darwin") == "Library/Application Support/Code/User/mcp.json"
    assert place(clients["vscode"], "windows", APPDATA=str(tmp_path / "Roaming")) == "Roaming/Code/User/mcp.json"
    assert place(clients["claude-desktop"], "darwin").startswith("Library/Application Support/Claude/")
    assert place(clients["codex"], "linux", CODEX_HOME=str(tmp_path / "c")) == "c/config.toml"


def test_the_bundle_starts_the_program(run: Run, user: Path, tmp_path: Path) -> None:
    file = tmp_path / "made.mcpb"
    assert run("bundle", str(file))[0] == 0
    place = tmp_path / "opened"
    with zipfile.ZipFile(file) as bundle:
        bundle.extractall(place)
    manifest = json.loads((place / "manifest.json").read_text())
    assert (place / manifest["server"]["entry_point"]).is_file()
    config = manifest["server"]["mcp_config"]
    command = [config["command"], *(word.replace("${__dirname}", str(place)) for word in config["args"])]
    home = user / ".computer-linker"
    with own_service(home), StdioClient(command, home) as client:
        client.initialize()
        listed = {tool["name"] for tool in client.request("tools/list")["tools"]}
    assert listed == {tool["name"] for tool in manifest["tools"]}


def test_chatgpt_is_given_what_its_form_asks_for(run: Run) -> None:
    code, shown, _ = run("chatgpt", "--json")
    answer = json.loads(shown)
    assert code == 0 and answer["ready"] is False and TOKEN not in shown
    assert answer["fields"]["Authentication"] == "OAuth"


def test_a_state_folder_elsewhere_is_named_in_the_entry(user: Path, tmp_path: Path) -> None:
    home = tmp_path / "elsewhere"
    write_config(home, tmp_path / "root")
    env = environment(home, HOME=str(user))
    subprocess.run([*PROGRAM, "client", "setup", "cursor", "--write"], env=env, check=True, capture_output=True)
    assert entry_in("cursor", user / FILES["cursor"])["env"] == {"COMPUTER_LINKER_HOME": str(home)}


def test_smoke_over_http_goes_every_way_a_client_may(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(tmp_path, token=TOKEN) as running, pytest.MonkeyPatch.context() as patched:
        patched.setenv("COMPUTER_LINKER_HOME", str(running.home))
        assert main(["client", "smoke", "--over", "http", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert [step["step"] for step in answer["steps"]] == [
            "healthz", "JSON API", "get_computer_info", "file.list in app",
        ]  # fmt: skip
        assert main(["client", "smoke", "--public"]) == 1
        assert "no public address" in capsys.readouterr().err
        running.stop()
        assert main(["client", "smoke", "--over", "http", "--json"]) == 1
