"""code.context along the whole road."""

import json
from pathlib import Path

import pytest

from support.repositories import git, repository
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
CANARY = "CANARY-OUT-7f3a"


def workspace(root: Path) -> None:
    repository(root)
    (root / "package.json").write_text(json.dumps({"scripts": {"build": "tsc", "test": "vitest"}}))
    (root / "src").mkdir()
    for number in range(3):
        (root / "src" / f"m{number}.ts").write_text("export const x = 1\n")
    (root / "AGENTS.md").write_text("Use tabs.\n")
    (root / "src" / "CLAUDE.md").write_text("Only here.\n")
    skill = root / ".claude" / "skills" / "deploy"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: deploy\ndescription: Ships it.\n---\nSteps\n")


async def test_one_call_tells_what_a_workspace_is(road: Road) -> None:
    workspace(road.root)
    data = await road.data("code.context", "src")
    assert data["overview"]["languages"][0] == {"language": "typescript", "files": 3}
    assert [(one["path"], one["content"]) for one in data["instructions"]] == [
        ("AGENTS.md", "Use tabs.\n"),
        ("src/CLAUDE.md", "Only here.\n"),
    ]
    assert data["skills"] == [{"name": "deploy", "description": "Ships it.", "path": ".claude/skills/deploy/SKILL.md"}]
    whole = await road.data("code.context")
    assert whole["overview"]["packageManager"] == "npm"
    assert [script["name"] for script in whole["overview"]["scripts"]] == ["build", "test"]
    assert whole["overview"]["configFiles"] == ["package.json"]
    assert whole["changes"]["branch"] == "main" and "a.txt" in str(whole["changes"]["entries"])
    assert "src/" in whole["tree"] and "src/m0.ts" in whole["tree"]
    assert not whole["truncated"]


async def test_it_suggests_next_operations_that_work(tmp_path: Path) -> None:
    """Point 001-059: suggested operations are whole requests, of those that the caller may use."""
    look = {"id": "look", "roots": [str(tmp_path / "root")], "capabilities": ["fs:read"]}
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root"), look]) as road:
        workspace(road.root)
        (road.root / "README.md").write_text("Read me.\n")
        wanted = (await road.data("project_overview"))["nextOperations"]
        assert [(one["op"], one["input"]) for one in wanted] == [
            ("git.diff", {}), ("file.read", {}), ("package.run", {"script": "test"}), ("package.run", {"script": "build"}),
            ("code.search_symbols", {"query": "main"}),
        ]  # fmt: skip
        only = (await road.data("code.context", scope="look"))["nextOperations"]
        assert [one["op"] for one in only] == ["git.diff", "file.read", "code.search_symbols"]
        for one in only:
            await road.data(one["op"], one["target"], input=one["input"], scope="look")


async def test_it_stays_within_its_budget(road: Road) -> None:
    workspace(road.root)
    (road.root / "AGENTS.md").write_text("Rule.\n" * 50_000)
    for number in range(500):
        (road.root / "src" / f"file-with-a-long-name-{number}.ts").write_text("x\n")
    data = await road.data("code.context", options={"maxBytes": 5000})
    assert data["truncated"] and data["instructions"][0]["truncated"]
    assert len(json.dumps(data)) < 9000


async def test_instruction_files_that_lead_out_are_skipped(road: Road, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(CANARY)
    (road.root / "AGENTS.md").symlink_to(secret)
    (road.root / "CLAUDE.md").symlink_to("../secret.txt")
    (road.root / ".env").write_text(CANARY)
    (road.root / "sub").mkdir()
    (road.root / "sub" / "AGENTS.md").symlink_to("../.env")
    (road.root / "skills").symlink_to(tmp_path)
    (road.root / "package.json").symlink_to(secret)
    for target in (".", "sub"):
        envelope = await road.call("code.context", target)
        assert envelope["ok"] and CANARY not in str(envelope)
        assert envelope["data"]["instructions"] == []


async def test_the_services_own_state_is_never_seen(tmp_path: Path) -> None:
    """A scope may happen to contain the state folder; its contents stay out of search, git and context."""
    scope = folder_scope(tmp_path)
    async with Road.open(tmp_path, [scope]) as road:
        (road.home / "config.json").write_text(f'{{"ownerToken": "{CANARY}"}}')
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", ".")
        for op, given in (
            ("file.search", {"query": "CANARY"}),
            ("file.find", {"pattern": "*.json"}),
            ("code.context", {}),
            ("code.search_symbols", {"query": "CANARY"}),
        ):
            envelope = await road.call(op, ".", input=given)
            assert CANARY not in str(envelope) and "config.json" not in str(envelope), op
        staged = await road.call("git.diff", ".", options={"staged": True})
        assert staged["ok"] and CANARY not in str(staged)
        assert await road.code("file.search", "home", input={"query": "x"}) == "permission_denied"
        assert await road.code("git.status", "home") == "permission_denied"
