"""What Codex starts outside the sandbox of its commands: git, with the programs a repository names, and what a rule allows."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.agents import environ_for, road_with
from support.agents_road import agent_on, agent_scope, command
from support.road import Road

pytestmark = pytest.mark.anyio
CANARY = "CANARY-3f1e"
LOOK = """
import ctypes, json, os, socket, sys
seen = {}
def tried(name, act):
    try:
        seen[name] = act() or "done"
    except OSError as error:
        seen[name] = "refused"
def grown(path):
    with open(path, "a") as file:
        file.write("# CANARY-3f1e")
def left():
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000 | 0x20000):
        raise OSError
home, port = sys.argv[1], int(sys.argv[2])
seen["key"] = os.environ.get("OPENAI_API_KEY", "")
tried("network", lambda: socket.create_connection(("127.0.0.1", port), 5).close())
tried("settings", lambda: grown(f"{home}/config.toml"))
tried("rules", lambda: grown(f"{home}/rules/default.rules"))
tried("login", lambda: open(f"{home}/auth.json").read())
tried("namespace", left)
tried("others", lambda: ",".join(pid for pid in os.listdir("/proc") if pid.isdigit() and b"codex" in open(f"/proc/{pid}/cmdline", "rb").read()))
with open("seen.json", "w") as file:
    json.dump(seen, file)
"""


def repository(folder: Path, filter_line: str) -> None:
    """A repository whose settings name a program that git runs on its files."""
    folder.mkdir()
    (folder / "f.txt").write_text("x\n")
    (folder / ".gitattributes").write_text("f.txt filter=e\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x"), ("config", "filter.e.clean", filter_line)):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)
    (folder / "f.txt").write_text("y\n")


async def turn(tmp_path: Path, line: str, target: str, rule: str = "") -> tuple[dict[str, Any], dict[str, Any], Path]:
    """The answer of a turn in which Codex runs a command, what the program saw, and the settings of Codex afterwards."""
    root = tmp_path / "root"
    with agent_on("codex", command("codex", line), {"say": "done"}) as (program, model):
        home = Path(program.environ["CODEX_HOME"])
        (home / "rules").mkdir()
        (home / "rules/default.rules").write_text(rule)
        (home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": CANARY}))
        (root / "look.py").write_text(LOOK)
        arguments = f"{root}/look.py {home} {model.port}"
        (root / "Makefile").write_text(f"all:\n\t@cd {target} && python3 {arguments}\n")
        repository(root / "repo", f"python3 {arguments}; cat")
        environ = {**environ_for(program), "OPENAI_API_KEY": CANARY}
        scope = agent_scope(root, "codex", network=False)
        async with road_with(tmp_path, environ, [scope]) as road:
            await allowed(road)
            options = {"sandbox": "workspace-write"}
            answer = await road.data("codex.run", target, input={"prompt": "go"}, options=options)
        settings = tmp_path / "settings"
        settings.write_text((home / "config.toml").read_text() + (home / "rules/default.rules").read_text())
    place = root / target / "seen.json"
    return answer, json.loads(place.read_text()) if place.exists() else {}, settings


async def allowed(road: Road) -> None:
    """Skip where there is no bubblewrap: without a root of its own Codex sees the owner's whole folder."""
    checked = await road.data("command.run", ".", input={"command": ["codex", "--version"]})
    if not checked["boundary"].startswith("bubblewrap"):
        pytest.skip("bubblewrap cannot be had here")


async def test_programs_that_a_repository_names_reach_nothing_of_the_owner(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    answer, seen, settings = await turn(tmp_path, "true", "repo")
    assert answer["status"] == "completed", answer
    # The program ran, so git works; where it wrote is an empty folder in place of Codex's own.
    assert (seen["key"], seen["others"]) == ("", "done"), seen
    assert (seen["network"], seen["rules"], seen["login"], seen["namespace"]) == ("refused",) * 4, seen
    assert CANARY not in settings.read_text()


async def test_a_rule_of_the_owner_lets_no_command_leave_codexs_sandbox(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    rule = 'prefix_rule(pattern=["make"], decision="allow")\n'
    answer, seen, settings = await turn(tmp_path, "make -C ..", "repo", rule)
    assert answer["status"] == "completed", answer
    # The login is what Codex itself must read; its commands may read it too, and have no network.
    assert (seen["network"], seen["settings"], seen["rules"], seen["namespace"]) == ("refused",) * 4, seen
    assert seen["key"] == "" and CANARY not in settings.read_text()


async def test_git_works_in_commands_of_codex(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    _answer, _seen, _settings = await turn(
        tmp_path, "git log --format=%s > log.txt; env -i git --version >> log.txt", "repo"
    )
    assert (tmp_path / "root/repo/log.txt").read_text().startswith("x\n")
