"""Rights given to one client decide what its commands and agents can read and write, not the rights of the scope."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.auth.oauth.scopes import grants_for
from computer_linker.computer.base import Computer
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.sandbox.boundary import Kind
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio

SECRET = "CANARY-IN-THE-FOLDER"
KINDS: tuple[Kind, ...] = ("bubblewrap", "landlock")
READ_IT = "import sys; print(open(sys.argv[1]).read())"
WRITE_IT = "import sys; open(sys.argv[1], 'w').write('overwritten')"


def client(root: Path, *groups: str) -> Principal:
    """An OAuth client that the owner gave these groups in scope `app`."""
    scope = Scope.from_wire(folder_scope(root))
    grants = frozenset(grants_for(list(groups), [scope]))
    return replace(LOCAL, id="oauth:client", proof="oauth", grants=grants)


def peer(*grants: str) -> Principal:
    """A paired machine with exactly these grants."""
    return replace(LOCAL, id="peer:other", proof="peer", grants=frozenset(grants))


@asynccontextmanager
async def road_under(tmp_path: Path, kind: Kind | None, **policy: Any) -> AsyncIterator[Road]:
    """A machine that has only this boundary; None for a machine without any."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "notes.txt").write_text(SECRET)
    (root / "package.json").write_text('{"scripts": {"show": "cat notes.txt"}}')
    async with Road.open(tmp_path, [folder_scope(root, **{"allowedCommands": ["*"], **policy})]) as road:
        services = road.app.services
        sandbox = Sandbox(services.use(Computer), services.home, () if kind is None else (kind,))
        services.provide(Sandbox, sandbox)
        services.provide(Preparation, Preparation.open(services))
        yield road


def python(code: str, *arguments: Path) -> dict[str, Any]:
    return {"command": ["/usr/bin/python3", "-c", code, *map(str, arguments)]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [("linker:run",), ("linker:run", "linker:write")])
async def test_a_client_that_may_not_read_sees_none_of_the_folders(
    tmp_path: Path, kind: Kind, groups: tuple[str, ...]
) -> None:
    async with road_under(tmp_path, kind) as road:
        notes, who = road.root / "notes.txt", client(road.root, *groups)
        for code in (READ_IT, WRITE_IT):
            ran = await road.call("command.run", ".", input=python(code, notes), principal=who)
            assert ran["ok"] and ran["data"]["exitCode"] != 0, ran
            assert SECRET not in str(ran)
            assert any("fs:read" in warning for warning in ran["warnings"])
        seen = await road.data("command.run", ".", input=python("import os; print(os.listdir('.'))"), principal=who)
        assert seen["stdout"] == "[]\n"
        assert notes.read_text() == SECRET


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_that_may_not_write_changes_nothing(tmp_path: Path, kind: Kind) -> None:
    async with road_under(tmp_path, kind) as road:
        notes = road.root / "notes.txt"
        for who in (client(road.root, "linker:run", "linker:read"), peer("app:command:run", "app:fs:read")):
            read = await road.data("command.run", ".", input=python(READ_IT, notes), principal=who)
            assert read["stdout"] == SECRET + "\n"
            for code in (WRITE_IT, "import os; os.unlink('notes.txt')", "import os; os.rename('notes.txt', 'x')"):
                ran = await road.call("command.run", ".", input=python(code, notes), principal=who)
                assert ran["data"]["exitCode"] != 0
                assert any("fs:write" in warning for warning in ran["warnings"])
            assert [path.name for path in sorted(road.root.iterdir())] == ["notes.txt", "package.json"]
            assert notes.read_text() == SECRET


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_with_all_three_rights_writes(tmp_path: Path, kind: Kind) -> None:
    async with road_under(tmp_path, kind) as road:
        who = client(road.root, "linker:run", "linker:read", "linker:write")
        ran = await road.call("command.run", ".", input=python(WRITE_IT, road.root / "notes.txt"), principal=who)
        assert ran["data"]["exitCode"] == 0 and ran["warnings"] == []
        assert (road.root / "notes.txt").read_text() == "overwritten"


@pytest.mark.parametrize("groups", [("linker:run",), ("linker:run", "linker:read"), ("linker:run", "linker:write")])
async def test_without_a_boundary_only_a_client_that_may_read_and_write_runs_commands(
    tmp_path: Path, groups: tuple[str, ...]
) -> None:
    mark = tmp_path / "ran"
    async with road_under(tmp_path, None) as road:
        who = client(road.root, *groups)
        for op in ("command.run", "command.start"):
            refused = await road.call(op, ".", input={"command": ["touch", str(mark)]}, principal=who)
            assert refused["error"]["code"] == "permission_denied"
            assert "kernel sandbox" in refused["error"]["message"]
        explained = await road.data(
            "computer.explain", input={"op": "command.run", "input": {"command": ["touch", "x"]}}, principal=who
        )
        assert explained["allowed"] is False and "kernel sandbox" in explained["reason"]
        assert not mark.exists()
        all_rights = client(road.root, "linker:run", "linker:read", "linker:write")
        assert (await road.data("command.run", ".", input={"command": ["true"]}, principal=all_rights))["exitCode"] == 0


async def test_a_started_process_is_held_by_the_rights_of_whoever_started_it(tmp_path: Path) -> None:
    async with road_under(tmp_path, "bubblewrap") as road:
        who = client(road.root, "linker:run")
        code = f"import os; print(os.path.exists({str(road.root / 'notes.txt')!r}), flush=True)"
        started = await road.data("command.start", ".", input=python(code), principal=who)
        read = await road.data("command.read", started["processId"], options={"waitSeconds": 10}, principal=who)
        assert [chunk["text"] for chunk in read["chunks"]] == ["False\n"]


async def test_names_in_the_folder_are_not_told_by_how_a_command_fails(tmp_path: Path) -> None:
    async with road_under(tmp_path, "bubblewrap") as road:
        tool = road.root / "tool-a"
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        (road.root / "sub").mkdir()
        who = client(road.root, "linker:run")
        told = [
            (await road.call("command.run", ".", input={"command": [str(road.root / name)]}, principal=who)).get(
                "error"
            )
            for name in ("tool-a", "tool-b")
        ]
        assert [each and each["code"] for each in told] == ["not_found", "not_found"]
        assert told[0] and told[1] and told[0]["message"].replace("tool-a", "tool-b") == told[1]["message"]
        for target in ("sub", "gone"):
            ran = await road.data("command.run", target, input={"command": ["true"]}, principal=who)
            assert ran["exitCode"] == 0


async def test_scripts_and_agents_need_reading(tmp_path: Path) -> None:
    async with road_under(tmp_path, "bubblewrap") as road:
        who = client(road.root, "linker:run")
        for op, given in (("package.run", {"script": "show"}), ("package.start", {"script": "show"})):
            refused = await road.call(op, ".", input=given, principal=who)
            assert refused["error"]["details"]["missing"] == ["fs:read"]
        for op in ("codex.run", "codex.start"):
            refused = await road.call(op, ".", input={"prompt": "go"}, principal=who)
            assert refused["error"]["details"]["missing"] == ["fs:read"]


async def test_an_agent_writes_only_for_a_client_that_may(tmp_path: Path) -> None:
    async with road_under(tmp_path, "bubblewrap") as road:
        who = client(road.root, "linker:run", "linker:read")
        refused = await road.call(
            "codex.run", ".", input={"prompt": "go"}, options={"sandbox": "workspace-write"}, principal=who
        )
        assert refused["error"]["code"] == "permission_denied"
        assert refused["error"]["details"]["rule"] == "sandbox"


async def test_a_failed_patch_quotes_nothing_to_a_client_that_may_not_read(tmp_path: Path) -> None:
    async with road_under(tmp_path, "bubblewrap") as road:
        who = client(road.root, "linker:write")
        edits = [{"path": "notes.txt", "oldText": "CANARY-IN-THE-FOLDEX", "newText": "x"}]
        refused = await road.call("file.patch", input={"edits": edits}, principal=who)
        assert not refused["ok"] and SECRET not in str(refused)


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (("linker:run",), "hidden"),
        (("linker:run", "linker:read"), "read-only"),
        (("linker:run", "linker:read", "linker:write"), "writable"),
    ],
)
async def test_info_and_explain_say_what_a_command_would_see(
    tmp_path: Path, groups: tuple[str, ...], told: str
) -> None:
    from computer_linker.service.info import computer_info

    async with road_under(tmp_path, "bubblewrap") as road:
        who = client(road.root, *groups)
        info = await computer_info(road.app, who, ["scopes"], None)
        assert info["scopes"][0]["capabilityPolicy"]["boundary"]["folders"] == told
        explained = await road.data(
            "computer.explain", input={"op": "command.run", "input": {"command": ["true"]}}, principal=who
        )
        assert explained["allowed"] is True
        assert (told in explained["reason"]) is (told != "writable")
