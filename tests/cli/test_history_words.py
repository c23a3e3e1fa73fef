"""Rows of the history say what an act was about, also where nothing came of it."""

import json
import re
from pathlib import Path

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.client import Client
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.commands import command
from support.pair import events_of
from support.road import Road, folder_scope
from support.service import serving, write_config

pytestmark = pytest.mark.anyio
FIRST = {"op": "file.write", "target": "first.txt", "input": {"content": "x"}}


def rows(home: Path, *words: str) -> str:
    return command(home, "history", *words).stdout


async def test_a_batch_names_its_steps_also_when_none_of_them_ran(tmp_path: Path) -> None:
    """Found: `tried to run a batch  refused: sensitive`."""
    scope = folder_scope(tmp_path / "root", confirm="all", allowedCommands=["git *"])
    secret = {"op": "file.write", "target": ".env", "input": {"content": "x"}}
    push = {"op": "command.run", "input": {"command": ["git", "push", "--password=hunter2-Kx9"]}}
    async with Road.open(tmp_path, [scope]) as road:
        await road.call("batch.run", input={"operations": [FIRST, secret]})
        await road.call("batch.run", input={"operations": [FIRST, push]})
        await road.call("batch.run", input={"operations": [{**FIRST, "target": f"{n}.txt"} for n in range(7)]})
    assert list((tmp_path / "root").iterdir()) == []
    told = rows(tmp_path / "home")
    batch = "tried to run a batch: write first.txt; "
    assert re.search(rf"{batch}write \.env +refused: step 2: a file that usually holds a secret", told), told
    assert re.search(rf"{batch}run git push --password=\[masked\] +refused: it needs your yes", told), told
    assert re.search(r"write 3\.txt; write 4\.txt; 2 more +refused: it needs your yes", told), told
    assert "hunter2" not in told


async def test_a_batch_keeps_no_part_of_a_stored_secret(tmp_path: Path) -> None:
    """Found: a secret was cut first, and what was left of it was no longer recognised."""
    secret = "stored words that look like any others in a line"
    scope = folder_scope(tmp_path / "root", confirm="all", allowedCommands=["echo *"])
    async with Road.open(tmp_path, [scope]) as road:
        stored = StoredSecret(name="words", host="api.example.org", variable="WORDS", value=secret)
        road.app.services.use(Vault).add(stored, replace=False)
        for step in (
            {"op": "command.run", "input": {"command": "echo " + "plain " * 28 + secret}},
            {**FIRST, "target": "folder/" * 9 + secret},
        ):
            answer = await road.call("batch.run", input={"operations": [step]})
            assert answer["error"]["code"] == "confirm_required", answer
        [run, write] = [event["summary"]["does"] for event in await events_of(road, "batch.run")]
    assert run.startswith("command.run echo plain") and write.startswith("file.write folder/folder/")
    assert "stored" not in run and "stored" not in write, (run, write)
    assert list((tmp_path / "root").iterdir()) == []


async def test_a_batch_names_steps_that_begin_with_a_bracket(tmp_path: Path) -> None:
    """Found: they were taken for digests and left out."""
    scope = folder_scope(tmp_path / "root", confirm="all", allowedCommands=["*"], allowShell=True)
    test = {"op": "command.run", "input": {"command": "[ -f x ] && make"}}
    async with Road.open(tmp_path, [scope]) as road:
        await road.call("batch.run", input={"operations": [{**FIRST, "target": "[id]/page.tsx"}, test]})
    assert list((tmp_path / "root").iterdir()) == []
    told = rows(tmp_path / "home")
    assert "write [id]/page.tsx; run [ -f x ] && make" in told, told


async def test_refused_staging_names_the_file(tmp_path: Path) -> None:
    scope = {**folder_scope(tmp_path / "root"), "capabilities": ["fs:read", "git:read"]}
    async with Road.open(tmp_path, [scope]) as road:
        assert await road.code("git.stage", ".", input={"paths": ["src/a.py", "b.py"]}) == "permission_denied"
    assert "tried to stage src/a.py and 1 more" in rows(tmp_path / "home")
    assert "$ computer-linker scope show app\n" in rows(tmp_path / "home", "show", "last")


async def test_a_program_is_known_by_its_client_and_by_its_command_where_it_is_stopped(tmp_path: Path) -> None:
    """Found: `process list` named no client, and the history had "stopped proc_59607e405ca83484c4c32917"."""
    with serving(
        tmp_path, token=None, scopes=[folder_scope(tmp_path / "root", allowedCommands=["sleep *"])]
    ) as service:
        with Client.over_socket(home=service.home) as linker:
            started = linker.scope("app").call("command.start", input={"command": "sleep 300"})
            process = started.data["processId"]
            listed = command(service.home, "process", "list").stdout
            assert re.search(rf"{process}  command  app +computer-linker-python\S*  running", listed), listed
            assert (
                json.loads(command(service.home, "process", "list", "--json").stdout)["processes"][0]["who"] in listed
            )
        assert command(service.home, "process", "stop", process).returncode == 0
        assert f"stopped sleep 300 ({process}) in app" in rows(service.home)


async def test_set_up_and_repairs_say_what_they_changed(tmp_path: Path) -> None:
    """Found: a repair that removed a scope was "repaired the setup", and so was one that found nothing to do."""
    home, folder = tmp_path / "home", tmp_path / "garden"
    folder.mkdir()
    assert command(home, "setup", tmp_path, "--read-only").returncode == 0
    assert command(home, "setup", folder, "--read-only").returncode == 0
    assert f"set this computer up: garden: scope added, {folder} may fs:read, " in rows(home)
    folder.rmdir()
    assert command(home, "doctor", "--fix").returncode == 0
    assert re.search(r"repaired the setup: Took \S+garden, which no longer exists, .*Removed scope garden", rows(home))
    command(home, "doctor", "--fix")
    assert re.search(r"repaired the setup +done, nothing changed", rows(home, "--limit", "1"))


def test_a_pause_that_was_none_and_a_no_to_nobody_are_told_as_that(tmp_path: Path) -> None:
    with serving(tmp_path, token=None) as service:
        assert command(service.home, "unpause").stdout == "Nothing was paused.\n"
        assert command(service.home, "approvals", "deny", "--client", "robot").returncode != 0
        command(service.home, "pause", "--for", "1h", env={"TZ": "America/New_York"})
        told = command(service.home, "history", env={"TZ": "America/New_York"}).stdout
    assert re.search(r"let clients work again +done, nothing changed", told), told
    assert "tried to deny the requests of robot" in told, told
    assert re.search(r"paused every client until \d{4}-\d\d-\d\d \d\d:\d\d +done", told) and "UTC" not in told, told


async def test_to_be_asked_for_other_hosts_reads_as_that(tmp_path: Path) -> None:
    write_config(tmp_path / "home", tmp_path / "root")
    assert command(tmp_path / "home", "scope", "allow-host", "app", "--ask").returncode == 0
    assert "allowed a host in the scope app: others, when you say yes" in rows(tmp_path / "home")


def test_the_newest_row_after_an_undo_is_the_undo(tmp_path: Path) -> None:
    """Found: `--limit 1` showed the part of it that changes files, under another id than `--limit 2`."""
    with serving(tmp_path, token=None) as service:
        command(service.home, "op", "file.write", "a.txt", "--input", "content=x")
        assert command(service.home, "undo", "last").returncode == 0
        ids = [rows(service.home, "--limit", limit).splitlines()[1].split()[2] for limit in ("1", "2")]
        assert ids[0] == ids[1] and '"op": "undo"' in rows(service.home, "show", ids[0], "--json")


async def test_a_started_program_is_shown_with_what_takes_its_changes_back(tmp_path: Path) -> None:
    """Found: the owner was told that undo takes back what a started program changes, which holds only where it was asked for."""
    scope = folder_scope(tmp_path / "root", confirm="all", allowedCommands=["touch *"])
    async with Road.open(tmp_path, [scope]) as road:
        shown = []
        for op, options in (("start", {}), ("start", {"undo": True}), ("run", {}), ("run", {"view": True})):
            await road.call(f"command.{op}", input={"command": "touch a"}, options=options)
            asked = road.app.services.use(Approvals).waiting()[-1]
            shown.append("\n".join(asked.about.lines if asked.about is not None else ()))
        assert list(road.root.iterdir()) == []
    started, kept, run, viewed = shown
    assert "Nothing takes its changes back" in started and "`undo` takes back" in kept and "`undo` takes back" in run
    assert "held on a view" in viewed and "`undo` takes" not in started + viewed


def test_status_counts_the_warnings_it_leaves_out(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    scopes = [folder_scope(folder, name, confirm=mode) for name, mode in (("a", "all"), ("b", "never"), ("c", "never"))]
    write_config(tmp_path / "home", tmp_path / "root", scopes=scopes)
    every = json.loads(command(tmp_path / "home", "status", "--json").stdout)["status"]["warnings"]
    told = command(tmp_path / "home", "status").stdout
    assert len(every) > 3 and told.count("warning ") == 4, told
    assert f"{len(every) - 3} more: computer-linker doctor" in told
