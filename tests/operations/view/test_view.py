"""Commands on a view: the folder is untouched until the view is kept, and a dropped view leaves nothing."""

import hashlib
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.road import LOCAL, OWNER, Road, folder_scope
from support.waiting import until_awaited

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    scopes = [
        folder_scope(root, "app", allowedCommands=["*"]),
        folder_scope(root, "always", allowedCommands=["*"], outcome="view"),
        folder_scope(root, "asks", allowedCommands=["*"], outcome="ask"),
        folder_scope(root, "bare", allowedCommands=["*"], sandbox="off"),
    ]
    (root / "sub").mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "sub" / "b.txt").write_text("b\n")
    (root / "gone.txt").write_text("gone\n")
    (root / "old.txt").write_text("a long enough text to be recognised\n")
    (root / ".env").write_text("SECRET=1\n")
    async with Road.open(tmp_path, scopes) as opened:
        yield opened


SCRIPT = """
printf 'one\\n2\\n' > a.txt; rm gone.txt; mv old.txt new.txt; mkdir -p made/deep; echo hi > made/deep/f; ln -s a.txt link
chmod 755 sub/b.txt; rm -r sub/nothing 2>/dev/null; true
"""


def digest(root: Path) -> str:
    """Names, modes, link targets, times and contents of a whole folder."""
    parts: list[str] = []
    for folder, names, files in os.walk(root):
        for name in sorted((*names, *files)):
            path = Path(folder) / name
            found = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            parts.append(repr((str(path.relative_to(root)), found.st_mode, found.st_mtime_ns, found.st_ino, content)))
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


async def run(road: Road, script: str, scope: str = "app", view: Any = True) -> dict[str, Any]:
    options = {"view": view} if view else {}
    return await road.data("command.run", ".", scope=scope, input={"command": ["sh", "-c", script]}, options=options)


async def test_the_folder_is_untouched_and_the_program_sees_its_changes(road: Road) -> None:
    before = digest(road.root)
    ran = await run(road, SCRIPT + "cat a.txt made/deep/f; ls")
    assert ran["exitCode"] == 0, ran
    assert ran["stdout"].startswith("one\n2\nhi\n") and "gone.txt" not in ran["stdout"]
    assert digest(road.root) == before
    assert (ran["view"]["added"], ran["view"]["changed"], ran["view"]["removed"]) == (4, 3, 1)
    again = await run(road, "cat a.txt; ls", view=ran["view"]["viewId"])
    assert again["stdout"].startswith("one\n2\n") and "new.txt" in again["stdout"]
    assert (await run(road, "cat a.txt", view=False))["stdout"] == "one\ntwo\n"


async def test_what_would_change_is_shown(road: Road) -> None:
    view_id = (await run(road, SCRIPT))["view"]["viewId"]
    shown = await road.data("view.show", view_id)
    found = {(change["path"], change["action"], change["kind"]) for change in shown["changes"]}
    assert found == {
        ("a.txt", "changed", "file"), ("gone.txt", "removed", "file"), ("new.txt", "renamed", "file"),
        ("made", "added", "directory"), ("made/deep", "added", "directory"), ("made/deep/f", "added", "file"),
        ("link", "added", "symlink"), ("sub/b.txt", "changed", "file"),
    }  # fmt: skip
    assert "--- a/a.txt\n+++ b/a.txt\n" in shown["diff"] and "-two\n+2\n" in shown["diff"]
    assert (shown["conflicts"], shown["refused"], shown["truncated"]) == ([], [], False)
    listed = await road.data("view.list")
    assert [view["viewId"] for view in listed["views"]] == [view_id]


async def test_dropped_it_leaves_nothing(road: Road) -> None:
    before = digest(road.root)
    view_id = (await run(road, SCRIPT + "mkdir shut; touch shut/x; chmod 0 shut"))["view"]["viewId"]
    dropped = await road.call("view.drop", view_id)
    assert dropped["ok"] and dropped["effect"] == "confirmed"
    assert digest(road.root) == before and list((road.home / "views").iterdir()) == []
    assert (await road.call("view.show", view_id))["error"]["code"] == "not_found"


async def test_kept_it_is_as_if_the_command_had_run_there(road: Road, tmp_path: Path) -> None:
    view_id = (await run(road, SCRIPT))["view"]["viewId"]
    kept = await road.call("view.keep", view_id)
    assert kept["ok"] and kept["effect"] == "confirmed", kept
    root = road.root
    assert (root / "a.txt").read_text() == "one\n2\n" and not (root / "gone.txt").exists()
    assert (root / "new.txt").read_text().startswith("a long") and not (root / "old.txt").exists()
    assert (root / "made/deep/f").read_text() == "hi\n" and os.readlink(root / "link") == "a.txt"
    assert (root / "sub/b.txt").stat().st_mode & 0o777 == 0o755
    assert list((road.home / "views").iterdir()) == []
    undone = await road.call("file.undo", None, input={"operationId": kept["operationId"]})
    assert undone["ok"], undone
    assert (
        (root / "a.txt").read_text() == "one\ntwo\n" and (root / "gone.txt").exists() and not (root / "made").exists()
    )


async def test_chosen_paths_are_kept_and_the_others_stay(road: Road) -> None:
    view_id = (await run(road, SCRIPT))["view"]["viewId"]
    kept = await road.data("view.keep", view_id, input={"paths": ["a.txt", "made"]})
    assert kept["kept"] == 4 and kept["left"] == 4
    assert (road.root / "a.txt").read_text() == "one\n2\n" and (road.root / "gone.txt").exists()
    assert {change["path"] for change in (await road.data("view.show", view_id))["changes"]} == {
        "gone.txt", "new.txt", "link", "sub/b.txt",
    }  # fmt: skip
    assert (await road.call("view.keep", view_id, input={"paths": ["nothing"]}))["error"]["code"] == "not_found"


async def test_a_name_in_a_new_folder_needs_the_folder_and_one_in_a_folder_that_was_there_does_not(road: Road) -> None:
    view_id = (await run(road, "mkdir -p made/deep; echo hi > made/deep/f; chmod 700 sub; echo x > sub/new"))["view"][
        "viewId"
    ]
    refused = await road.call("view.keep", view_id, input={"paths": ["made/deep"]})
    assert refused["error"]["code"] == "invalid_request" and not (road.root / "made").exists()
    kept = await road.data("view.keep", view_id, input={"paths": ["sub/new"]})
    assert kept["paths"] == ["sub/new"] and (road.root / "sub" / "new").read_text() == "x\n"


async def test_views_are_made_and_dropped_at_the_same_time(road: Road) -> None:
    old = [(await run(road, "mkdir -p a/b; touch a/b/c"))["view"]["viewId"] for _ in range(3)]
    answers: list[dict[str, Any]] = []

    async def call(op: str, target: str, **rest: Any) -> None:
        answers.append(await road.call(op, target, **rest))

    async with anyio.create_task_group() as group:
        for view_id in old:
            group.start_soon(call, "view.drop", view_id)
            group.start_soon(partial(call, "command.run", ".", input={"command": ["true"]}, options={"view": True}))
    assert [answer["ok"] for answer in answers] == [True] * 6
    assert len(list((road.home / "views").iterdir())) == 3


@pytest.mark.parametrize("change", ["a.txt", "gone.txt"])
async def test_what_changed_meanwhile_is_a_conflict_and_nothing_is_kept(road: Road, change: str) -> None:
    view_id = (await run(road, SCRIPT))["view"]["viewId"]
    (road.root / change).write_text("changed by its owner\n")
    before = digest(road.root)
    assert (await road.data("view.show", view_id))["conflicts"] == [change]
    refused = await road.call("view.keep", view_id)
    assert refused["error"]["code"] == "conflict" and digest(road.root) == before
    assert not list((road.home / "undo").glob("kept/*"))


async def test_protected_and_secret_names_are_closed_inside_and_never_kept(road: Road) -> None:
    ran = await run(road, "cat .env; mkdir .vscode && echo x > .vscode/tasks.json; mkdir -p n/.git; echo ok > fine")
    assert "SECRET" not in ran["stdout"]
    view_id = ran["view"]["viewId"]
    shown = await road.data("view.show", view_id)
    assert {each["path"] for each in shown["refused"]} == {".vscode", ".vscode/tasks.json", "n/.git"}
    kept = await road.data("view.keep", view_id)
    assert (road.root / "fine").exists() and (road.root / "n").is_dir()
    assert not (road.root / ".vscode").exists() and not (road.root / "n/.git").exists()
    assert {each["path"] for each in kept["refused"]} == {".vscode", ".vscode/tasks.json", "n/.git"}


async def test_a_view_is_its_principals_own(road: Road) -> None:

    view_id = (await run(road, SCRIPT))["view"]["viewId"]
    other = replace(LOCAL, id="oauth:other", session="s2", connection="c2")
    for op in ("view.show", "view.keep", "view.drop"):
        assert (await road.call(op, view_id, principal=other))["error"]["code"] == "not_found"
    assert (await road.call("view.list", principal=other))["data"]["views"] == []
    assert (await road.call("view.show", view_id, principal=OWNER))["ok"]


async def test_a_view_that_the_policy_made_and_nothing_changed_is_gone(road: Road) -> None:
    for scope in ("always", "asks"):
        ran = await run(road, "cat a.txt", scope=scope, view=False)
        assert ran["stdout"] == "one\ntwo\n" and ran["view"] is None
        assert (await road.data("view.list", scope=scope))["views"] == []
    assert list((road.home / "views").iterdir()) == []
    asked_for = await run(road, "cat a.txt", scope="always")
    assert (await run(road, "cat a.txt", scope="always", view=asked_for["view"]["viewId"]))["exitCode"] == 0


async def test_the_policy_puts_every_command_on_a_view(road: Road) -> None:
    ran = await run(road, "echo x > made-by-policy", scope="always", view=False)
    assert ran["view"]["added"] == 1 and not (road.root / "made-by-policy").exists()
    assert (await road.call("view.keep", ran["view"]["viewId"], scope="always"))["ok"]
    assert (road.root / "made-by-policy").exists()


async def test_where_the_policy_asks_a_client_cannot_keep(road: Road) -> None:
    ran = await run(road, "echo x > unasked", scope="asks", view=False)
    kept = await road.call("view.keep", ran["view"]["viewId"], scope="asks")
    assert not kept["ok"] and kept["error"]["code"] == "confirm_required" and not (road.root / "unasked").exists()


async def test_a_running_program_keeps_its_view_from_being_decided(road: Road) -> None:
    started = await road.data(
        "command.start", ".", input={"command": ["sh", "-c", "echo x > f; sleep 600"]}, options={"view": True}
    )
    view_id = started["viewId"]
    for op in ("view.keep", "view.drop"):
        assert (await road.call(op, view_id))["error"]["code"] == "conflict"
    await road.data("command.stop", started["processId"], options={"signal": "kill"})
    assert (await road.call("view.drop", view_id))["ok"] and not (road.root / "f").exists()


async def test_without_the_boundary_nothing_runs(road: Road) -> None:
    answer = await road.call(
        "command.run", ".", scope="bare", input={"command": ["touch", "x"]}, options={"view": True}
    )
    assert answer["error"]["code"] == "provider_unavailable" and not (road.root / "x").exists()
    assert not (road.home / "views").exists() or list((road.home / "views").iterdir()) == []


async def test_a_program_that_cannot_run_on_a_view_does_not_run_where_the_policy_wants_one(road: Road) -> None:
    answer = await road.call(
        "codex.run", ".", scope="always", input={"prompt": "x"}, options={"sandbox": "workspace-write"}
    )
    assert not answer["ok"] and answer["error"]["code"] in ("provider_unavailable", "permission_denied"), answer


async def test_a_view_however_deep_is_dropped(road: Road) -> None:
    deep = "import os\nfor _ in range(3000):\n os.mkdir('d'); os.chdir('d')\n"
    ran = await road.data(
        "command.run", ".", input={"command": ["python3", "-c", deep]}, options={"view": True, "timeoutSeconds": 120}
    )
    view_id = (await road.data("view.list"))["views"][0]["viewId"]
    assert ran["exitCode"] == 0, ran
    assert (await road.call("view.show", view_id))["error"]["code"] == "limit_exceeded"
    assert (await road.call("view.drop", view_id))["ok"] and not list((road.home / "views").iterdir())


@pytest.mark.parametrize(
    "script",
    [
        "mknod a.txt c 0 0 || { rm a.txt; mknod a.txt c 0 0; }",
        "python3 -c \"import os; os.setxattr('sub', 'user.overlay.opaque', b'y')\"",
        "python3 -c \"import os; os.setxattr('sub', 'user.overlay.redirect', b'/../../..')\"",
        "ln -s / slash; ln -s ../../home state; mkfifo pipe",
        "ln a.txt hard; ln sub/b.txt hard2",
    ],
)
async def test_tricks_with_the_overlays_own_marks_reach_nothing_outside(
    road: Road, script: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("canary")
    before, around = digest(road.root), digest(outside)
    ran = await run(road, script)
    assert digest(road.root) == before
    await road.call("view.keep", ran["view"]["viewId"])
    assert digest(outside) == around and (road.root / ".env").read_text() == "SECRET=1\n"
    assert not any(path.is_block_device() or path.is_char_device() or path.is_fifo() for path in road.root.rglob("*"))


async def test_a_started_program_that_changed_nothing_leaves_no_view(road: Road) -> None:
    """Of a scope that puts every change on a view; one that was asked for stays."""
    started: list[str] = []
    for line, options in (("true", {}), ("echo x > made", {}), ("true", {"view": True})):
        given = {"input": {"command": ["sh", "-c", line]}, "options": options}
        one = await road.data("command.start", ".", scope="always", **given)
        started.append(one["viewId"])
        while (await road.data("command.read", one["processId"], scope="always", options={"waitSeconds": 20}))[
            "status"
        ] == "running":
            pass
    assert all(started)

    async def without_the_first() -> set[str] | None:
        left = {one["viewId"] for one in (await road.data("view.list", scope="always"))["views"]}
        return None if started[0] in left else left

    left = await until_awaited(without_the_first)
    assert left == set(started[1:]) and not (road.root / "made").exists()
