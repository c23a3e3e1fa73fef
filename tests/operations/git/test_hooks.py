"""git.commit with hooks: they run as commands of the scope, inside its sandbox, or not at all."""

from pathlib import Path
from typing import Any

import pytest

from support.repositories import git, repository
from support.road import FOLDER_CAPABILITIES, Road, folder_scope

pytestmark = pytest.mark.anyio


def hook(root: Path, name: str, body: str, folder: str = ".git/hooks") -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (root / folder / name).chmod(0o755)


def staged(root: Path) -> str:
    repository(root)
    git(root, "add", "a.txt")
    return git(root, "rev-parse", "HEAD")


async def committed(road: Road) -> dict[str, object]:
    return await road.call("git.commit", input={"message": "second"}, options={"hooks": True})


async def test_hooks_run_in_the_sandbox_and_read_the_message(road: Road, tmp_path: Path) -> None:
    staged(road.root)
    outside = tmp_path / "outside"
    hook(road.root, "pre-commit", f"touch ran-before; touch '{outside}' 2>/dev/null; true")
    hook(road.root, "commit-msg", 'cp "$1" message-seen')
    hook(road.root, "post-commit", "touch ran-after")
    envelope = await committed(road)
    assert envelope["ok"], envelope
    assert envelope["data"]["hooks"] and envelope["effect"] == "confirmed"  # type: ignore[index]
    assert (road.root / "ran-before").exists() and (road.root / "ran-after").exists()
    assert (road.root / "message-seen").read_text() == "second"
    assert not outside.exists()


async def test_a_hook_that_refuses_stops_the_commit(road: Road) -> None:
    before = staged(road.root)
    hook(road.root, "pre-commit", "echo not today; exit 3")
    envelope = await committed(road)
    error = envelope["error"]
    assert error["code"] == "conflict" and "not today" in error["details"]["output"]  # type: ignore[index]
    assert git(road.root, "rev-parse", "HEAD") == before


async def test_without_the_right_to_run_commands_no_hook_runs(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root")
    scope["capabilities"] = [name for name in FOLDER_CAPABILITIES if name != "command:run"]
    async with Road.open(tmp_path, [scope]) as road:
        before = staged(road.root)
        hook(road.root, "pre-commit", "touch ran")
        assert (await committed(road))["error"]["code"] == "permission_denied"  # type: ignore[index]
        assert git(road.root, "rev-parse", "HEAD") == before and not (road.root / "ran").exists()


@pytest.mark.parametrize("policy", [{"sandbox": "off"}, {"allowedCommands": ["npm *"]}])
async def test_a_scope_that_would_not_run_the_command_does_not_run_the_hook(
    tmp_path: Path, policy: dict[str, Any]
) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", **policy)]) as road:
        before = staged(road.root)
        hook(road.root, "pre-commit", "touch ran")
        assert (await committed(road))["error"]["code"] == "permission_denied"  # type: ignore[index]
        assert git(road.root, "rev-parse", "HEAD") == before and not (road.root / "ran").exists()


async def test_hooks_outside_the_scope_are_refused(road: Road, tmp_path: Path) -> None:
    before = staged(road.root)
    hook(tmp_path, "pre-commit", "touch ran", "evil")
    git(road.root, "config", "core.hooksPath", str(tmp_path / "evil"))
    assert (await committed(road))["error"]["code"] == "path_out_of_scope"  # type: ignore[index]
    git(road.root, "config", "core.hooksPath", "../evil")
    assert (await committed(road))["error"]["code"] == "path_out_of_scope"  # type: ignore[index]
    assert git(road.root, "rev-parse", "HEAD") == before


async def test_a_repository_without_hooks_commits_as_usual(road: Road) -> None:
    staged(road.root)
    envelope = await committed(road)
    assert envelope["ok"] and not envelope["data"]["hooks"]  # type: ignore[index]


async def test_only_hooks_that_there_are_are_said_not_to_have_run(road: Road) -> None:
    staged(road.root)
    for number, warned in enumerate((False, True)):
        (road.root / "a.txt").write_text(f"change {number}\n")
        await road.data("git.stage", input={"paths": ["a.txt"]})
        if warned:
            hook(road.root, "pre-commit", "exit 1")
        made = await road.call("git.commit", input={"message": f"change {number}"})
        assert made["ok"] and ("The repository's hooks were not run." in made["warnings"]) is warned, made
