"""command.run through the whole road."""

import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.road import LOCAL, Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio

SCOPES = ("app", "bare")


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    scopes = [
        folder_scope(root, "app", allowedCommands=["*"], maxOutputBytes=1_000_000),
        folder_scope(root, "bare", allowedCommands=["*"], sandbox="off", maxOutputBytes=1_000_000),
        folder_scope(root, "some", allowedCommands=["echo *", "git *", "./tool *"], deniedCommands=["git push *"]),
        folder_scope(root, "shell", allowedCommands=["sh *"], allowShell=True),
        folder_scope(root, "short", allowedCommands=["*"], maxRuntimeSeconds=1, maxOutputBytes=100),
    ]
    async with Road.open(tmp_path, scopes) as opened:
        yield opened


def sh(script: str) -> dict[str, Any]:
    return {"command": ["sh", "-c", script]}


@pytest.mark.parametrize("scope", SCOPES)
async def test_streams_code_and_folder_are_told(road: Road, scope: str) -> None:
    (road.root / "sub").mkdir()
    ran = await road.data("command.run", "sub", scope=scope, input=sh("pwd; echo problem >&2; exit 3"))
    assert (ran["exitCode"], ran["signal"], ran["timedOut"], ran["truncated"]) == (3, None, False, False)
    assert ran["stdout"] == f"{road.root / 'sub'}\n" and ran["stderr"] == "problem\n"


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_signal_is_told(road: Road, scope: str) -> None:
    ran = await road.data("command.run", ".", scope=scope, input=sh("kill -SEGV $$"))
    assert (ran["exitCode"], ran["signal"]) == (139, "SIGSEGV")


@pytest.mark.parametrize("scope", SCOPES)
async def test_input_is_given_and_otherwise_closed(road: Road, scope: str) -> None:
    fed = {"command": ["cat"], "stdin": "grüße\n" * 20_000}
    assert (await road.data("command.run", ".", scope=scope, input=fed, options={"maxOutputBytes": 900_000}))[
        "stdout"
    ] == fed["stdin"]
    assert (await road.data("command.run", ".", scope=scope, input={"command": ["cat"]}))["stdout"] == ""
    unread = {"command": ["true"], "stdin": "x" * 900_000}
    assert (await road.data("command.run", ".", scope=scope, input=unread))["exitCode"] == 0


@pytest.mark.parametrize("scope", SCOPES)
async def test_the_executed_argv_is_the_given_one(road: Road, scope: str) -> None:
    argv = ["$(id)", "a b", "", "*", "';", "new\nline", "ü", "--", "-x", "\\"]
    show = "import sys, json; print(json.dumps(sys.argv[1:]))"
    ran = await road.data("command.run", ".", scope=scope, input={"command": ["/usr/bin/python3", "-c", show, *argv]})
    assert json.loads(ran["stdout"]) == argv


@pytest.mark.parametrize("scope", SCOPES)
async def test_output_over_the_limit_loses_its_middle_and_no_character(road: Road, scope: str) -> None:
    options = {"maxOutputBytes": 1000}
    ran = await road.data(
        "command.run", ".", scope=scope, input=sh("yes 'grüße €' | head -c 3000000; echo END"), options=options
    )
    assert ran["truncated"] and ran["stdout"].startswith("grüße €\n") and ran["stdout"].endswith("END\n")
    assert "\ufffd" not in ran["stdout"] and "bytes left out" in ran["stdout"]
    assert len(ran["stdout"].encode()) < 1100


async def test_policy_narrows_what_a_request_asks(road: Road) -> None:
    options = {"maxOutputBytes": 1_000_000, "timeoutSeconds": 60}
    ran = await road.data(
        "command.run", ".", scope="short", input=sh("yes | head -c 100000; sleep 30"), options=options
    )
    assert ran["timedOut"] and ran["truncated"] and len(ran["stdout"]) < 200


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_timeout_stops_gently_first_and_leaves_nothing(road: Road, scope: str) -> None:
    script = "trap 'echo bye; exit 7' TERM; (sleep 97.5; echo late) & setsid sleep 97.5 & wait"
    ran = await road.data("command.run", ".", scope=scope, input=sh(script), options={"timeoutSeconds": 0.4})
    assert ran["timedOut"] and ran["stdout"] == "bye\n" and ran["exitCode"] == 7
    assert await gone("97.5")


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_stubborn_process_is_killed(road: Road, scope: str) -> None:
    script = "trap '' TERM; while :; do sleep 0.05; done"
    with anyio.fail_after(60):
        ran = await road.data("command.run", ".", scope=scope, input=sh(script), options={"timeoutSeconds": 0.3})
    assert ran["timedOut"] and ran["signal"] == "SIGKILL"


@pytest.mark.parametrize("scope", SCOPES)
async def test_what_holds_the_pipe_does_not_hold_the_reply(road: Road, scope: str) -> None:
    with anyio.fail_after(60):
        ran = await road.data("command.run", ".", scope=scope, input=sh("sleep 98.5 & setsid -f sleep 98.5; echo done"))
    assert ran["stdout"] == "done\n"
    assert await gone("98.5")


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_client_that_goes_takes_its_command_along(road: Road, scope: str) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(
            lambda: road.call(
                "command.run", ".", scope=scope, input=sh("touch started; setsid -f sleep 99.5; sleep 99.5")
            )
        )
        await until(lambda: (road.root / "started").exists())
        group.cancel_scope.cancel()
    assert await gone("99.5")


async def test_shell_syntax_is_refused_and_nothing_runs(road: Road) -> None:
    for text in ("echo a; touch marker", "touch marker && true", "$(touch marker)", "echo hi\ntouch marker"):
        assert await road.code("command.run", ".", input={"command": text}) == "invalid_request"
        assert await road.code("command.start", ".", input={"command": text}) == "invalid_request"
    assert not (road.root / "marker").exists()


async def test_a_shell_runs_where_policy_allows_it_inside_the_boundary(road: Road) -> None:
    ran = await road.data("command.run", ".", scope="shell", input={"command": "echo a; echo $((1 + 1)) | cat"})
    assert ran["stdout"] == "a\n2\n" and ran["boundary"] != "none"


async def test_rules_decide_and_a_refusal_runs_nothing(road: Road) -> None:
    refused = [
        ["touch", "marker"],
        ["sh", "-c", "touch marker"],
        ["git ", "status"],
        ["git", "push", "x"],
        ["nohup", "echo"],
    ]
    for argv in refused:
        code = await road.code("command.run", ".", scope="some", input={"command": argv})
        assert code in ("permission_denied", "not_found"), argv
    assert not (road.root / "marker").exists()
    assert (await road.data("command.run", ".", scope="some", input={"command": "echo hi"}))["stdout"] == "hi\n"
    assert (await road.data("command.run", ".", scope="some", input={"command": "/bin/echo hi"}))["stdout"] == "hi\n"


async def test_explain_judges_the_command_itself_and_starts_nothing(road: Road) -> None:
    for command, allowed in ((["echo", "hi"], True), (["touch", "marker"], False), ("echo a; touch marker", False)):
        asked = {"op": "command.run", "target": ".", "input": {"command": command}}
        told = await road.data("computer.explain", scope="some", input=asked)
        assert told["allowed"] is allowed, told
    assert list(road.root.iterdir()) == []


async def test_a_planted_program_is_not_taken_for_an_allowed_one(road: Road) -> None:
    for name in ("echo", "tool"):
        (road.root / name).write_text("#!/bin/sh\ntouch marker\n")
        (road.root / name).chmod(0o755)
    assert await road.code("command.run", ".", scope="some", input={"command": "./echo hi"}) == "permission_denied"
    path = f"{road.root}:{os.environ['PATH']}"
    assert await road.code("command.run", ".", scope="some", input={"command": "echo x", "env": {"PATH": path}}) == (
        "permission_denied"
    )
    assert not (road.root / "marker").exists()
    # Named by the owner, it runs, and only because the boundary holds.
    assert (await road.data("command.run", ".", scope="some", input={"command": "./tool"}))["exitCode"] == 0
    assert (road.root / "marker").exists()


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "PATH", "NODE_OPTIONS", "GIT_EXTERNAL_DIFF", "PYTHONPATH", "BASH_ENV", "PAGER", "npm_config_script_shell",
     "GIT_SSH_COMMAND", "PERL5OPT", "COMPUTER_LINKER_HOME", "LESSOPEN", "EDITOR", "HOME", "glibc_tunables", "A-B", "", "1A",
     "TAR_OPTIONS", "OPENSSL_CONF", "DOTNET_STARTUP_HOOKS", "RSYNC_RSH", "RIPGREP_CONFIG_PATH", "Gtk_Modules", "PS4", "FOO_RSH"],
)  # fmt: skip
async def test_a_variable_that_takes_over_is_refused(road: Road, name: str) -> None:
    request = {"command": ["touch", "marker"], "env": {name: "x"}}
    assert await road.code("command.run", ".", input=request) in ("permission_denied", "invalid_request")
    assert not (road.root / "marker").exists()


async def test_an_ordinary_variable_is_set(road: Road) -> None:
    ran = await road.data("command.run", ".", input={**sh("echo $GREETING-$CI"), "env": {"GREETING": "hi", "CI": "1"}})
    assert ran["stdout"] == "hi-1\n"


@pytest.mark.parametrize("target", ["..", "/etc", "../outside", "link"])
async def test_a_folder_outside_is_refused(road: Road, tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").mkdir()
    (road.root / "link").symlink_to(tmp_path / "outside")
    code = await road.code("command.run", target, input={"command": ["touch", "marker"]})
    assert code == "path_out_of_scope"
    assert list((tmp_path / "outside").iterdir()) == []


async def test_a_missing_program_and_a_file_that_is_none(road: Road) -> None:
    (road.root / "data.txt").write_text("x")
    (road.root / "broken").write_bytes(b"\x7fELFnothing")
    (road.root / "broken").chmod(0o755)
    assert await road.code("command.run", ".", input={"command": ["no-such-program"]}) == "not_found"
    assert await road.code("command.run", ".", input={"command": ["./data.txt"]}) == "not_found"
    code_or_exit = await road.call("command.run", ".", input={"command": ["./broken"]})
    assert not code_or_exit["ok"] or code_or_exit["data"]["exitCode"] != 0


async def test_the_history_says_what_ran_without_its_secrets(road: Road) -> None:
    secret = "hunter2-41aa"
    await road.data("command.run", ".", input={"command": ["echo", "hello", f"--password={secret}"]})
    await road.call("command.run", ".", input={"command": ["false", "--token", secret]})
    await road.call("command.run", ".", input={"command": ["no-such", f"https://me:{secret}@example.com/"]})
    await road.call("command.run", ".", input={"command": ["echo"]}, options={"cwd": "../" + secret})
    stored = b"".join(path.read_bytes() for path in road.home.rglob("*") if path.is_file())
    assert secret.encode() not in stored
    found = await road.data("history.last", input={"query": "hello"}, scope="app")
    assert [event["commandPreview"] for event in found["events"]] == ["echo hello --password=[masked]"]


async def test_progress_carries_the_newest_line(road: Road) -> None:
    told: list[str] = []
    call = {
        "scope": "app",
        "op": "command.run",
        "target": ".",
        "input": sh("for i in 1 2 3; do echo line $i; sleep 0.3; done"),
    }
    principal = replace(LOCAL)
    await road.app.dispatcher.call_wire(call, principal, lambda message, _now, _total: told.append(message))
    assert "line 1" in told and len(told) >= 2


async def gone(argument: str, within_s: float = 60) -> bool:
    """True once no process has this argument."""
    with anyio.move_on_after(within_s):
        await until(lambda: not any(argument in line for line in command_lines()))
        return True
    return False


def command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if argv and argv[0].rpartition(b"/")[2] == b"sleep":
            lines.append(b" ".join(argv).decode(errors="replace"))
    return lines
