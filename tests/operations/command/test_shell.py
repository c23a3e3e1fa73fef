"""A line of shell inside the boundary, ordinary programs that only read, and a project's own programs."""

import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def road(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Road]:
    folder = tmp_path_factory.mktemp("shell")
    root, shared, alone = folder / "root", folder / "shared", folder / "alone"
    for place in (root, shared, alone):
        (place / ".venv" / "bin").mkdir(parents=True)
        (place / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
        (place / ".venv" / "bin" / "python3").symlink_to("/usr/bin/python3")
        (place / "node_modules" / ".bin").mkdir(parents=True)
        tool = place / "node_modules" / ".bin" / "greet"
        tool.write_text("#!/bin/sh\necho hello $1\n")
        tool.chmod(0o755)
        (place / "a.txt").write_text("one\ntwo\nthree\n")
    (root / ".git" / "hooks").mkdir(parents=True)
    own = ["python3 *", "greet *", "git *"]
    scopes = [
        folder_scope(root, "app", allowShell=True),
        folder_scope(root, "listed", allowedCommands=own, deniedCommands=["git push *"], allowShell=True),
        folder_scope(root, "denied", deniedCommands=["touch *"], allowShell=True),
        folder_scope(root, "argv", allowedCommands=own),
        folder_scope(root, "bare", allowedCommands=own, allowShell=True, sandbox="off"),
        {**folder_scope(root, "nothing"), "policy": None},
        folder_scope(alone, "own", allowedCommands=own, allowShell=True),
        folder_scope(shared, "first", allowedCommands=own, allowShell=True),
        folder_scope(shared, "second", allowedCommands=own, allowShell=True),
    ]
    del scopes[5]["policy"]
    async with Road.open(folder, scopes) as opened:
        yield opened


async def run(road: Road, scope: str, command: str | list[str]) -> dict[str, Any]:
    return await road.data("command.run", ".", scope=scope, input={"command": command})


async def refused(road: Road, scope: str, command: str | list[str]) -> dict[str, Any]:
    envelope = await road.call("command.run", ".", scope=scope, input={"command": command})
    assert not envelope["ok"], envelope
    error: dict[str, Any] = envelope["error"]
    return error


async def test_a_line_runs_with_pipes_and_chains(road: Road) -> None:
    ran = await run(
        road, "app", "cat a.txt | head -2 | tr a-z A-Z && echo $((1 + 2)) || echo no; for i in x y; do echo $i; done"
    )
    assert ran["stdout"] == "ONE\nTWO\n3\nx\ny\n" and ran["boundary"] != "none"
    ran = await run(road, "app", "diff <(echo a) <(echo b) > out.txt; wc -l < out.txt")
    assert ran["stdout"].strip() == "4", "the shell is bash, whose grammar the line is read by"
    (road.root / "out.txt").unlink()


async def test_a_line_is_started_and_driven_too(road: Road) -> None:
    started = await road.data("command.start", ".", scope="app", input={"command": "read word; echo got $word | cat"})
    sent = await road.data(
        "command.send",
        started["processId"],
        scope="app",
        input={"text": "it\n"},
        options={"untilEnd": True, "waitSeconds": 30},
    )
    assert sent["output"] == "got it\n"


async def test_network_and_protected_names_are_as_they_are(road: Road) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran = await run(road, "app", f"(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo reached; true")
        assert "reached" not in ran["stdout"]
    await run(road, "app", "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; true")
    assert not (road.root / ".git" / "hooks" / "pre-commit").exists()
    ran = await run(road, "app", f"cat {road.home}/config.json {Path.home()}/.ssh/id_rsa 2>/dev/null; true")
    assert ran["stdout"] == ""


async def test_the_lists_speak_for_every_program_of_the_line(road: Road) -> None:
    for line in ("git status; touch made", "ls | xargs touch made", "$(echo touch) made", "git push x && touch made"):
        assert (await refused(road, "listed", line))["code"] == "permission_denied", line
    for line in (
        "true && touch made",
        "env touch made",
        "sh -c 'touch made'",
        "`echo touch` made",
        "PATH=. git x; touch made",
    ):
        assert (await refused(road, "denied", line))["code"] == "permission_denied", line
    assert not (road.root / "made").exists()
    assert (await run(road, "listed", "cd . && grep -n two a.txt | cut -d: -f1"))["stdout"] == "2\n"
    assert (await run(road, "denied", "echo x > made2; mv made2 made3; rm made3; echo done"))["stdout"] == "done\n"


async def test_without_a_boundary_it_stays_argv(road: Road) -> None:
    assert (await refused(road, "bare", "git status | cat"))["details"]["rule"] == "allowShell"
    assert (await refused(road, "bare", "cat a.txt"))["details"]["rule"] == "allowedCommands", (
        "reading is not free there"
    )
    assert (await refused(road, "argv", "cat a.txt | cat"))["code"] == "invalid_request"
    assert "allowShell" in (await refused(road, "argv", "echo a > made"))["message"]
    assert not (road.root / "made").exists()


async def test_ordinary_programs_that_read_need_no_rule(road: Road) -> None:
    for scope in ("argv", "nothing"):
        for command in (["cat", "a.txt"], ["sed", "-n", "1,3p", "a.txt"], "head -n 3 a.txt", "grep -h . a.txt"):
            assert (await run(road, scope, command))["stdout"] == "one\ntwo\nthree\n", (scope, command)
        for command in (
            ["find", ".", "-name", "a.txt", "-delete"],
            ["sed", "-i", "d", "a.txt"],
            ["touch", "made"],
            ["sort", "-o", "a.txt", "/dev/null"],
        ):
            assert (await refused(road, scope, command))["code"] == "permission_denied", (scope, command)
    assert (road.root / "a.txt").read_text() == "one\ntwo\nthree\n" and not (road.root / "made").exists()


async def test_ripgrep_is_on_the_path_inside(road: Road) -> None:
    assert (await run(road, "app", "rg --no-heading -n two a.txt | cat"))["stdout"] == "2:two\n"
    assert (await run(road, "argv", ["rg", "-c", "t", "a.txt"]))["stdout"] == "2\n"


async def test_a_projects_own_programs_count_as_those_programs(road: Road) -> None:
    ran = await run(road, "own", [".venv/bin/python3", "-c", "import sys; print(sys.prefix)"])
    assert ran["stdout"].strip() == str(road.root.parent / "alone" / ".venv")
    assert (await run(road, "own", "node_modules/.bin/greet you"))["stdout"] == "hello you\n"
    line = "cd node_modules && ./.bin/greet you | cat; ls; cd .."
    assert (await refused(road, "own", line))["code"] == "permission_denied", "it is unclear where the line then is"
    assert (await run(road, "own", "cd . && node_modules/.bin/greet you | tr a-z A-Z"))["stdout"] == "HELLO YOU\n"


async def test_a_project_program_of_another_name_or_place_does_not(road: Road) -> None:
    for name in (".venv/bin/other", "node_modules/.bin/other", "bin/python3", "greet"):
        place = road.root.parent / "alone" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("#!/bin/sh\ntouch made\n")
        place.chmod(0o755)
        assert (await refused(road, "own", [f"./{name}"]))["code"] == "permission_denied", name
    assert not (road.root.parent / "alone" / "made").exists()


async def test_a_project_program_that_another_scope_could_replace_does_not_run(road: Road) -> None:
    for scope in ("first", "second"):
        for command in (
            ["node_modules/.bin/greet", "x"],
            "node_modules/.bin/greet x | cat",
            [".venv/bin/python3", "-c", ""],
        ):
            assert (await refused(road, scope, command))["code"] == "permission_denied", (scope, command)


async def test_a_project_link_shows_nothing_from_outside(road: Road, tmp_path: Path) -> None:
    """A link to an executable file elsewhere is not brought into the sandbox because a project names it."""
    secret = tmp_path / "secret.sh"
    secret.write_text("#!/bin/sh\necho the secret\n")
    secret.chmod(0o755)
    link = road.root.parent / "alone" / "node_modules" / ".bin" / "git"
    os.symlink(secret, link)
    try:
        envelope = await road.call("command.run", ".", scope="own", input={"command": ["node_modules/.bin/git", "x"]})
        assert "the secret" not in str(envelope)
    finally:
        link.unlink()


async def test_a_refusal_names_what_may_run_and_the_owners_command(road: Road) -> None:
    error = await refused(road, "argv", ["cargo", "test", "--all"])
    assert error["code"] in ("permission_denied", "not_found")
    error = await refused(road, "argv", ["touch", "made"])
    assert "Allowed here: git, greet, python3, and programs that only read" in error["message"]
    assert 'computer-linker scope allow argv "touch made *"' in error["message"] and error["details"]["allowed"] == [
        "git",
        "greet",
        "python3",
    ]


async def test_explain_says_the_same(road: Road) -> None:
    for line, allowed in (
        ("ls | wc -l", True),
        ("ls | tee x", False),
        ("git push x", False),
        ("ls $(touch made)", False),
    ):
        asked = {"op": "command.run", "target": ".", "input": {"command": line}}
        told = await road.data("computer.explain", scope="listed", input=asked)
        assert told["allowed"] is allowed, (line, told)
    assert not (road.root / "made").exists()
