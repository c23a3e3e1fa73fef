"""Agents on a view: a real Codex on a scripted model works in its folder as always, and the folder stays as it is."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from support.agents import until_over
from support.agents_road import agent_road, command
from support.models.responses import patching
from support.outcomes import digest, outcome
from support.repositories import repository

pytestmark = pytest.mark.anyio

EDITS = (
    command("codex", "rm sub/x.txt; printf 'p\\nq\\n' > made.txt"),
    patching("*** Update File: a.txt\n@@\n one\n-two\n+zwei\n+drei\n*** Add File: new.txt\n+fresh"),
    {"say": "all done"},
)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_codex_edits_its_view_and_the_folder_stays_until_it_is_kept(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    before = contents(root)
    async with agent_road(tmp_path, "codex", *EDITS) as (road, _):
        ran = await road.data("codex.run", ".", input={"prompt": "go"}, options={"view": True, "includeDiff": True})
        assert contents(root) == before
        assert (ran["finalMessage"], ran["diffSummary"]["changedFiles"]) == ("all done", 4), ran
        assert "+zwei" in ran["diff"] and ran["boundary"].count("view: overlay") == 1
        assert {(each["path"], each["action"]) for each in ran["diffSummary"]["files"]} == {
            ("a.txt", "modified"), ("made.txt", "added"), ("new.txt", "added"), ("sub/x.txt", "deleted"),
        }  # fmt: skip
        kept = await road.call("view.keep", ran["viewId"])
        assert kept["ok"], kept
        assert (root / "a.txt").read_text().endswith("zwei\ndrei\n") and not (root / "sub/x.txt").exists()
        assert (root / "made.txt").read_text() == "p\nq\n" and (root / "new.txt").read_text() == "fresh\n"


async def test_where_the_policy_wants_views_codex_runs_on_one_and_writes_its_own_folder_only(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("a\n")
    steps = (command("codex", "echo in > in.txt; echo out > ../out.txt; echo gone > ../a.txt"), {"say": "ok"})
    async with agent_road(tmp_path, "codex", *steps, outcome="view") as (road, _):
        started = await road.data("codex.start", "sub", input={"prompt": "go"})
        state = await until_over(road, started["sessionId"])
        assert state["status"] == "completed" and state["viewId"] == started["viewId"], state
        shown = await road.data("view.show", started["viewId"])
        assert [(each["path"], each["action"]) for each in shown["changes"]] == [("sub/in.txt", "added")]
        assert sorted(contents(root)) == ["a.txt"]


async def test_a_turn_that_only_reads_makes_no_view(tmp_path: Path) -> None:
    async with agent_road(tmp_path, "codex", {"say": "read"}, outcome="view") as (road, _):
        ran = await road.data("codex.run", ".", input={"prompt": "go", "workflow": "plan"})
        assert ran["viewId"] is None and (await road.data("view.list"))["views"] == []


async def test_a_turn_that_changed_nothing_leaves_no_view(tmp_path: Path) -> None:
    steps = (command("codex", "echo looked"), {"say": "ok"})
    async with agent_road(tmp_path, "codex", *steps, outcome="view") as (road, _):
        ran = await road.data("codex.run", ".", input={"prompt": "go"})
        assert ran["viewId"] is None and (await road.data("view.list"))["views"] == []


async def test_several_agents_work_side_by_side_and_are_kept_one_after_another(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("".join(f"{number}\n" for number in range(20)))
    lines = ("sed -i s/^2$/two/ a.txt; echo 1 > one", "sed -i s/^17$/seventeen/ a.txt; echo 2 > two")
    views: list[str] = []
    for line in lines:
        async with agent_road(tmp_path, "codex", command("codex", line), {"say": "ok"}) as (road, _):
            ran = await road.data("codex.run", ".", input={"prompt": "go"}, options={"view": True})
            views.append(ran["viewId"])
    async with agent_road(tmp_path, "codex", {"say": "ok"}) as (road, _):
        assert len({*views, *(each["viewId"] for each in (await road.data("view.list"))["views"])}) == 2
        await road.data("view.keep", views[0])
        shown = await road.data("view.show", views[1])
        assert (shown["conflicts"], shown["merged"]) == ([], ["a.txt"])
        refused = await road.call("view.keep", views[1])
        assert refused["error"]["code"] == "conflict" and refused["error"]["details"]["merged"] == ["a.txt"]
        assert not (root / "two").exists()
        kept = await road.data("view.keep", views[1], options={"merge": True})
        assert kept["merged"] == ["a.txt"] and (root / "two").exists()
    found = (root / "a.txt").read_text().split()
    assert (found[2], found[17], len(found)) == ("two", "seventeen", 20)


async def test_a_turn_is_dropped_without_a_trace_and_kept_as_a_bare_turn(tmp_path: Path) -> None:
    root, since = repository(tmp_path / "root"), time.time_ns() - 3_600_000_000_000
    shutil.copytree(root, tmp_path / "template", symlinks=True)
    before = digest(root)
    after: list[dict[str, Any]] = []
    for view in (True, True, False):
        async with agent_road(tmp_path, "codex", *EDITS) as (road, _):
            ran = await road.data("codex.run", ".", input={"prompt": "go"}, options={"view": view})
            assert ran["finalMessage"] == "all done", ran
            if view and not after:
                assert digest(root) == before
                await road.data("view.drop", ran["viewId"])
                assert digest(root) == before
                after.append(before)
                continue
            if view:
                await road.data("view.keep", ran["viewId"])
        after.append(outcome(root, since))
        shutil.rmtree(root)
        shutil.copytree(tmp_path / "template", root, symlinks=True)
    assert after[1] == after[2]
