"""A shape covers no option and no further word that makes the program do something else than the person saw."""

import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.choices import choices_of
from computer_linker.approvals.request import ApprovalRequest
from computer_linker.approvals.standing import standing_of
from computer_linker.model.event import Approval
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

CASES = [
    # An option that the person did not see can write a file or start a program.
    (["git", "log", "-1"], ["git", "log", "--output=out.txt"], False),
    (["git", "log", "-1"], ["git", "log", "--outp=out.txt"], False),
    (["git", "log", "-1"], ["git", "log", "-p", "--ext-diff"], False),
    (["git", "log", "-1"], ["git", "log", "-p", "--textconv"], False),
    (["git", "log", "-1"], ["git", "log", "--oneline", "-5", "--since=yesterday", "HEAD"], True),
    (["git", "diff"], ["git", "diff", "--output", "out.txt"], False),
    (["git", "diff"], ["git", "diff", "--no-index", "a", "b"], False),
    (["git", "show"], ["git", "show", "--output=x"], False),
    (["git", "grep", "x"], ["git", "grep", "-Otouch", "x"], False),
    (["git", "grep", "x"], ["git", "grep", "--open-files-in-pager=touch", "x"], False),
    (["git", "commit", "-m", "one"], ["git", "commit", "-m", "two"], True),
    (["git", "commit", "-m", "one"], ["git", "commit", "-m", "two", "--amend"], False),
    (["git", "add", "a"], ["git", "add", "b"], True),
    (["git", "add", "a"], ["git", "add", "-A"], False),
    (["git", "archive", "HEAD"], ["git", "archive", "HEAD", "-o", "x.tar"], False),
    (["sort", "a"], ["sort", "a", "-r"], True),
    (["sort", "a"], ["sort", "a", "-o", "b"], False),
    (["sort", "a"], ["sort", "a", "--compress-program=touch"], False),
    (["uniq", "a"], ["uniq", "a", "b"], False),
    (["rg", "x"], ["rg", "x", "--pre", "touch"], False),
    (["dd", "if=a"], ["dd", "if=a", "of=b"], False),
    (["gcc", "a.c"], ["gcc", "a.c", "@options"], False),
    (["pytest", "tests"], ["pytest", "tests", "-p", "evil"], False),
    (["cargo", "test"], ["cargo", "test", "--config", "x"], False),
    (["go", "test"], ["go", "test", "-exec", "touch"], False),
    # A further word chooses what is done.
    (["git", "submodule", "status"], ["git", "submodule", "foreach", "touch x"], False),
    (["git", "bisect", "log"], ["git", "bisect", "run", "touch", "x"], False),
    (["git", "stash", "list"], ["git", "stash", "drop"], False),
    (["git", "stash", "list"], ["git", "stash", "list"], True),
    (["git", "config", "user.name"], ["git", "config", "alias.x", "!touch x"], False),
    (["git", "remote", "-v"], ["git", "remote", "add", "x", "y"], False),
    (["git", "branch"], ["git", "branch", "evil"], False),
    (["git", "worktree", "list"], ["git", "worktree", "remove", "x"], False),
    (["make", "test"], ["make", "test", "deploy"], False),
    (["make", "test"], ["make", "test", "SHELL=/bin/false"], False),
    (["just", "test"], ["just", "test", "deploy"], False),
    (["npm", "run", "build"], ["npm", "run", "deploy"], False),
    (["npm", "run", "build"], ["npm", "run", "build"], True),
    # What a module of Python is to do, and what a package manager fetches.
    (["python3", "-m", "pip", "list"], ["python3", "-m", "pip", "install", "./evil"], False),
    (["python3", "-m", "pip", "list"], ["python3", "-m", "pip", "list"], True),
    (["python3", "-u", "-m", "pip"], ["python3", "-u", "-m", "pip", "install", "./evil"], False),
    (["python3", "-m", "pytest", "tests"], ["python3", "-m", "pytest", "tests", "more"], True),
    (["pip", "install", "a"], ["pip", "install", "evil"], False),
    (["npm", "install"], ["npm", "install", "evil"], False),
    (["yarn", "add", "a"], ["yarn", "add", "evil"], False),
    (["cargo", "install", "a"], ["cargo", "install", "evil"], False),
    (["go", "get", "a"], ["go", "get", "evil"], False),
    (["git", "checkout", "main"], ["git", "checkout", "."], False),
    (["git", "reset"], ["git", "reset", "HEAD~9"], False),
    (["npm", "exec", "tsc"], ["npm", "exec", "touch"], False),
    (["uv", "run", "true"], ["uv", "run", "touch", "x"], False),
    (["docker", "run", "a"], ["docker", "run", "b"], False),
]


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as opened:
        yield opened


async def request_of(road: Road, *command: str) -> ApprovalRequest:
    """The request of a command, whether or not its program is installed here."""
    await road.call("command.run", ".", input={"command": ["true"]})
    [asked] = road.app.services.use(Approvals).waiting()
    assert asked.about is not None
    return replace(asked, about=replace(asked.about, argv=command))


async def test_a_shape_covers_what_the_program_was_seen_to_do_and_nothing_else(road: Road) -> None:
    wrong = []
    for allowed, sent, is_covered in CASES:
        shape = standing_of(await request_of(road, *allowed), "shape", None, Approval("yes", "", "terminal", ""))
        if shape.covers(await request_of(road, *sent)) is not is_covered:
            wrong.append((allowed, sent))
    assert wrong == []


SAID = {
    ("git", "log", "-1"): "begin with `git log` with no further options but `-1` and those that choose what it shows (",
    ("git", "add", "a"): "commands that begin with `git add` with no further options (",
    ("git", "commit", "-m", "x"): "commands that begin with `git commit` with no further options but `-m` (",
    ("ls", "src"): "commands that begin with `ls src` and only read (",
    ("npm", "run", "build"): "the command `npm run build` (",
}


async def test_a_shape_says_which_options_it_covers(road: Road) -> None:
    for command, sentence in SAID.items():
        asked = await request_of(road, *command)
        shape = next(one for one in await choices_of(road.app.services, asked) if one.answer == "shape")
        assert sentence in shape.covers, shape.covers


async def test_a_yes_to_reading_the_log_lets_no_file_be_written(road: Road) -> None:
    subprocess.run(["git", "init", "-q"], cwd=road.root, check=True, timeout=60)
    parts: dict[str, Any] = {"input": {"command": ["git", "status"]}}
    refused = await road.call("command.run", ".", **parts)
    approvals = road.app.services.use(Approvals)
    assert approvals.answer(refused["error"]["details"]["approvalId"], "shape") is not None
    assert (await road.call("command.run", ".", **parts))["ok"]
    (road.root / "a").write_text("1")
    refused = await road.call("command.run", ".", input={"command": ["git", "diff", "--no-index", "/dev/null", "a"]})
    assert approvals.answer(refused["error"]["details"]["approvalId"], "shape") is not None
    done = await road.call(
        "command.run", ".", input={"command": ["git", "diff", "--no-index", "/dev/null", "a", "--output=out.txt"]}
    )
    assert done["error"]["code"] == "confirm_required" and not (road.root / "out.txt").exists()


async def test_the_past_that_a_shape_would_have_covered_is_counted_alike(road: Road) -> None:
    subprocess.run(["git", "init", "-q"], cwd=road.root, check=True, timeout=60)
    for command in (["git", "status"], ["git", "status", "--short"], ["git", "status", "--ignored=traditional"]):
        await road.call("command.run", ".", input={"command": command})
    [asked] = [
        one for one in road.app.services.use(Approvals).waiting() if one.about and one.about.argv == ("git", "status")
    ]
    shape = next(one for one in await choices_of(road.app.services, asked) if one.answer == "shape")
    assert shape.matched == 2, shape
