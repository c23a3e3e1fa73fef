"""codex.run with a real Codex on a scripted model, through the whole road."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.model.envelope import Call
from computer_linker.providers.processes.prepare import Preparation
from support.agents import codex_on, environ_for, road_with
from support.children import children_of_this_process
from support.models.responses import patching, responses_model, shell
from support.models.scripted import Model, Step
from support.repositories import git, repository
from support.road import FOLDER_CAPABILITIES, LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio

EDITS = (
    shell("rm sub/x.txt; printf 'p\\nq\\n' > made.txt"),
    patching("*** Update File: a.txt\n@@\n one\n-two\n+zwei\n+drei\n*** Add File: new.txt\n+fresh"),
    {"say": "all done"},
)


@asynccontextmanager
async def codex_road(
    tmp_path: Path, *steps: Step, config: str = "", **policy: Any
) -> AsyncIterator[tuple[Road, Model]]:
    """A road whose Codex follows these steps; `reading` is a second scope of the same folder without fs:write."""
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    app = folder_scope(root, "app", **{"allowedCommands": ["codex *"], **policy})
    reading = {**app, "id": "reading", "capabilities": [each for each in FOLDER_CAPABILITIES if each != "fs:write"]}
    with responses_model(*steps) as model, codex_on(model, config) as codex:
        async with road_with(tmp_path, environ_for(codex), [app, reading]) as road:
            yield road, model


async def test_codex_edits_files_and_the_summary_is_exact(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    async with codex_road(tmp_path, *EDITS) as (road, _):
        envelope = await road.call("codex.run", ".", input={"prompt": "go"}, options={"includeDiff": True})
    assert envelope["ok"], envelope
    data = envelope["data"]
    assert (data["exitCode"], data["status"], data["finalMessage"]) == (0, "completed", "all done")
    summary = data["diffSummary"]
    assert {each["path"]: (each["action"], each["insertions"], each["deletions"]) for each in summary["files"]} == {
        "a.txt": ("modified", 2, 1),
        "made.txt": ("added", 2, 0),
        "new.txt": ("added", 1, 0),
        "sub/x.txt": ("deleted", 0, 1),
    }
    assert (summary["changedFiles"], summary["insertions"], summary["deletions"]) == (4, 5, 2)
    assert "+zwei" in data["diff"] and "-two" in data["diff"]
    assert (envelope["effect"], data["sandbox"]) == ("confirmed", "workspace-write")
    assert data["boundary"].startswith("bubblewrap: files") and "codex workspace-write" in data["boundary"]
    # The repository itself was not touched by the comparison.
    assert git(root, "status", "--porcelain").splitlines() == [" M a.txt", " D sub/x.txt", "?? made.txt", "?? new.txt"]
    assert children_of_this_process() == []


async def test_file_undo_takes_a_run_back_where_there_is_no_repository(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"one\r\ntwo\n")
    (root / "a.txt").chmod(0o750)
    (root / "sub" / "x.txt").write_text("x\n")
    (root / "idle").mkdir()
    line = "printf new > a.txt; rm -r sub; mkdir fresh; echo y > fresh/y.txt; echo z > idle/z.txt"
    steps = (shell(line), {"say": "ok"})
    async with codex_road(tmp_path, *steps) as (road, _):
        envelope = await road.call("codex.run", ".", input={"prompt": "go"})
        assert envelope["data"]["diffSummary"]["undoable"], envelope
        assert not (root / "sub").exists()
        undone = await road.call("file.undo", input={"operationId": envelope["operationId"]})
    assert undone["ok"], undone
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\n"
    assert (root / "a.txt").stat().st_mode & 0o777 == 0o750
    assert (root / "sub" / "x.txt").read_text() == "x\n"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "idle", "sub"]


async def test_file_undo_refuses_when_a_file_has_changed_since(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    async with codex_road(tmp_path, shell("echo two > a.txt; echo two > b.txt"), {"say": "ok"}) as (road, _):
        envelope = await road.call("codex.run", ".", input={"prompt": "go"})
        (root / "a.txt").write_text("mine\n")
        assert await road.code("file.undo", input={"operationId": envelope["operationId"]}) == "conflict"
    assert ((root / "a.txt").read_text(), (root / "b.txt").read_text()) == ("mine\n", "two\n")


async def test_what_codex_runs_stays_inside_the_folder_and_off_the_network(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("CANARY")
    root = tmp_path / "root"
    (root / "work").mkdir(parents=True)
    (root / "beside.txt").write_text("beside")
    (root / "work" / ".env").write_text("TOKEN=CANARY-ENV")
    tries = (
        f"cat {outside}/secret.txt; echo x > {outside}/made; echo x > ../beside.txt; cat .env; mkdir .codex;"
        " echo x > .codex/config.toml; mkdir -p .git/hooks; echo x > .git/hooks/post-commit; echo x > ok.txt;"
        " env; python3 -c \"import socket; socket.create_connection(('127.0.0.1', PORT), 2); print('CONNECTED')\""
    )
    async with codex_road(tmp_path, {"say": "x"}) as (road, model):
        model.steps[:] = [shell(tries.replace("PORT", str(model.port))), {"say": "tried"}]
        data = await road.data("codex.run", "work", input={"prompt": "go"})
        told = model.said_to()
    assert data["finalMessage"] == "tried"
    assert [each["path"] for each in data["diffSummary"]["files"]] == ["work/ok.txt"]
    assert list(outside.iterdir()) == [outside / "secret.txt"]
    assert (root / "beside.txt").read_text() == "beside"
    assert not (root / "work" / ".codex" / "config.toml").exists()
    assert not (root / "work" / ".git" / "hooks").exists()
    assert "CANARY" not in told and "CONNECTED\\\\n" not in told


async def test_read_only_without_fs_write_and_for_plan_and_review(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    async with codex_road(tmp_path, shell("echo x > made.txt || echo REFUSED"), {"say": "looked"}) as (road, model):
        data = await road.data("codex.run", ".", scope="reading", input={"prompt": "go"})
        assert (data["sandbox"], data["finalMessage"], data["diffSummary"]["changedFiles"]) == (
            "read-only",
            "looked",
            0,
        )
        model.requests.clear()
        data = await road.data("codex.run", ".", input={"prompt": "Is it safe?", "workflow": "review"})
        assert (data["sandbox"], data["workflow"]) == ("read-only", "review")
        told = model.said_to()
        assert "Is it safe?" in told and "+two" in told, "the change at hand is part of the prompt"
        refused = await road.call(
            "codex.run", ".", scope="reading", input={"prompt": "go"}, options={"sandbox": "workspace-write"}
        )
        assert refused["error"]["code"] == "permission_denied"
    assert not (root / "made.txt").exists()


async def test_a_workspace_env_file_never_moves_codex_home(tmp_path: Path) -> None:
    root, mark = tmp_path / "root", tmp_path / "root" / "mark"
    (root / ".codex").mkdir(parents=True)
    (root / ".env").write_text("CODEX_HOME=./.codex\nCOMPUTER_LINKER_HOME=./c\n")
    servers = f'[mcp_servers.evil]\ncommand = "/usr/bin/touch"\nargs = ["{mark}"]\n'
    (root / ".codex" / "config.toml").write_text(servers)
    trusted = f'\n[projects."{root}"]\ntrust_level = "trusted"\n'
    async with codex_road(tmp_path, {"say": "hi"}, config=trusted, network=True) as (road, _):
        data = await road.data("codex.run", ".", input={"prompt": "x"})
    assert data["finalMessage"] == "hi"
    assert not mark.exists()


async def test_refusals_start_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    async with codex_road(tmp_path, {"say": "hi"}) as (road, model):
        cases: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
            "path_out_of_scope": ("../out", {"prompt": "x"}, {}),
            "not_found": ("absent", {"prompt": "x"}, {}),
            "invalid_request": (".", {"prompt": "x", "workflow": "continue"}, {}),
            "process_not_found": (".", {"prompt": "x", "sessionId": "codex_" + "0" * 24}, {}),
        }
        for code, (target, given, options) in cases.items():
            assert await road.code("codex.run", target, input=given, options=options) == code
        assert (
            await road.code("codex.run", ".", input={"prompt": "x"}, options={"model": "--yolo"}) == "invalid_request"
        )
        assert (
            await road.code("codex.run", ".", input={"prompt": "x"}, options={"sandbox": "danger-full-access"})
            == "invalid_request"
        )
        assert model.requests == []
        assert (await road.data("codex.list"))["runs"] == []


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ({"allowedCommands": ["npm *"]}, "permission_denied"),
        ({"deniedCommands": ["codex exec *"]}, "permission_denied"),
    ],
)
async def test_the_command_policy_must_allow_codex_too(tmp_path: Path, policy: dict[str, Any], code: str) -> None:
    async with codex_road(tmp_path, {"say": "hi"}, **policy) as (road, model):
        assert await road.code("codex.run", ".", input={"prompt": "x"}) == code
        assert model.requests == []
        # The rules are asked before anything is told of Codex's state.
        Path(road.app.services.use(Preparation).environ["CODEX_HOME"], "config.toml").unlink()
        assert await road.code("codex.run", ".", input={"prompt": "x"}) == code


async def test_without_the_capability_nothing_is_told(tmp_path: Path) -> None:
    scope = {
        **folder_scope(tmp_path / "root", "app", allowedCommands=["*"]),
        "capabilities": ["fs:read", "command:run"],
    }
    async with Road.open(tmp_path, [scope]) as road:
        for op, target in (
            ("codex.run", "."),
            ("codex.start", "."),
            ("codex.read", "x"),
            ("codex.stop", "x"),
            ("codex.list", None),
        ):
            given = {"prompt": "x"} if op in ("codex.run", "codex.start") else None
            assert await road.code(op, target, input=given) == "permission_denied"


async def test_a_missing_program_and_an_old_one_are_told_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    programs = tmp_path / "programs"
    programs.mkdir()
    environ = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": "/root", "CODEX_HOME": "/var/tmp/absent-codex-home"}
    environ["OPENAI_API_KEY"] = "scripted"
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["codex *"])]
    async with road_with(tmp_path, environ, scopes) as road:
        missing = (await road.call("codex.run", ".", input={"prompt": "x"}))["error"]
        assert (missing["code"], missing["details"]["reason"]) == ("provider_unavailable", "missing")
        assert "npm install" in missing["details"]["remedy"]
    mark = tmp_path / "root" / "ran"
    (programs / "codex").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "codex-cli 0.1.0" && exit\ntouch {mark}\n'
    )
    (programs / "codex").chmod(0o755)
    async with road_with(tmp_path, environ, scopes) as road:
        old = (await road.call("codex.run", ".", input={"prompt": "x"}))["error"]
        assert (old["code"], old["details"]["reason"]) == ("provider_unavailable", "version")
    assert not mark.exists()
    # One that tells no version is tried, and what it does not know tells the rest.
    for script in ("echo \"error: unexpected argument '--json' found\" >&2; exit 2", "echo hello"):
        (programs / "codex").write_text(f"#!/bin/sh\n{script}\n")
        async with road_with(tmp_path, environ, scopes) as road:
            other = (await road.call("codex.run", ".", input={"prompt": "x"}))["error"]
            assert (other["code"], other["details"]["reason"]) == ("provider_unavailable", "version"), other
    assert not Path("/var/tmp/absent-codex-home").exists(), "nothing is made where the owner's folder would be"


async def test_a_codex_that_never_logged_in_is_not_started(tmp_path: Path) -> None:
    async with codex_road(tmp_path, {"say": "hi"}) as (road, model):
        environ = road.app.services.use(Preparation).environ
        Path(environ["CODEX_HOME"], "config.toml").write_text('model = "some-model"\n')
        error = (await road.call("codex.run", ".", input={"prompt": "x"}))["error"]
        assert (error["code"], error["details"]["reason"]) == ("provider_unavailable", "login_required")
        assert "codex login" in error["details"]["remedy"]
        Path(environ["CODEX_HOME"], "config.toml").write_text("model = \n")
        error = (await road.call("codex.run", ".", input={"prompt": "x"}))["error"]
        assert (error["code"], error["details"]["reason"]) == ("provider_unavailable", "config")
        assert model.requests == [] and (await road.data("codex.list"))["runs"] == []


async def test_a_model_that_is_not_there_ends_the_run_soon(tmp_path: Path) -> None:
    async with codex_road(tmp_path, {"say": "hi"}) as (road, model):
        config = Path(road.app.services.use(Preparation).environ["CODEX_HOME"], "config.toml")
        config.write_text(config.read_text().replace(f":{model.port}/", ":9/"))
        with anyio.fail_after(60):
            error = (await road.call("codex.run", ".", input={"prompt": "x"}))["error"]
        assert (error["code"], error["details"]["reason"]) == ("execution_failed", "model_failed")


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [(401, "provider_unavailable", "login_required"), (500, "execution_failed", "model_failed")],
)
async def test_a_failing_model_and_a_missing_login_are_told(
    tmp_path: Path, status: int, code: str, reason: str
) -> None:
    async with codex_road(tmp_path, {"http": status}) as (road, _):
        error = (await road.call("codex.run", ".", input={"prompt": "x"}))["error"]
        assert (error["code"], error["details"]["reason"]) == (code, reason), error
        assert error["details"]["remedy"]
        state = await road.data("codex.read", error["details"]["sessionId"])
        assert (state["status"], state["problem"]["code"]) == ("failed", reason)


async def test_a_model_that_fails_after_work_was_done_is_an_outcome(tmp_path: Path) -> None:
    async with codex_road(tmp_path, shell("echo x > made.txt"), {"http": 500}) as (road, _):
        data = await road.data("codex.run", ".", input={"prompt": "x"})
        assert (data["exitCode"], data["status"], data["problem"]["code"]) == (1, "failed", "model_failed")
        assert data["diffSummary"]["changedFiles"] == 1


async def test_prompts_and_answers_stay_out_of_the_history_and_in_private_files(tmp_path: Path) -> None:
    async with codex_road(tmp_path, {"say": "ANSWER-CANARY"}) as (road, _):
        await road.data("codex.run", ".", input={"prompt": "PROMPT-CANARY"})
        await road.data("history.last", options={"limit": 10})
    kept = [path for path in road.home.rglob("*") if path.is_file() and b"-CANARY" in path.read_bytes()]
    assert kept and {path.relative_to(road.home).parts[0] for path in kept} == {"agents"}
    # Codex makes its own files readable to all, in a folder that is closed to all others.
    for path in kept:
        assert any(one.stat().st_mode & 0o077 == 0 for one in (path, *path.parents) if one.is_relative_to(road.home))


async def test_progress_is_told_while_it_runs(tmp_path: Path) -> None:
    lines: list[str] = []
    async with codex_road(tmp_path, shell("echo working"), {"say": "finished"}) as (road, _):
        call = Call(scope="app", op="codex.run", target=".", input={"prompt": "x"})
        reply = await road.app.dispatcher.call(call, LOCAL, lambda text, *_: lines.append(text))
    assert reply.ok
    assert "finished" in lines and any("echo working" in line for line in lines), json.dumps(lines)
