"""Bounds of views: bytes, number, age, what a crash left; and what changes in the folder between."""

import json
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.store import Bounds
from computer_linker.model.principal import Principal
from computer_linker.providers.views.store import MAX_AGE_S, MAX_OF_ONE, Views
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("".join(f"{number}\n" for number in range(20)))
    (root / "b.bin").write_bytes(b"\0" * 100)
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"])]) as opened:
        yield opened


async def run(road: Road, script: str, view: Any = True, principal: Principal = LOCAL) -> dict[str, Any]:
    given = {"command": ["sh", "-c", script]}
    options = {"view": view, "timeoutSeconds": 60}
    return await road.call("command.run", ".", input=given, options=options, principal=principal)


async def test_a_program_that_fills_its_view_is_ended_and_nothing_more_starts_in_it(road: Road) -> None:
    road.app.services.provide(Views, Views(road.home / "views", max_bytes=20 << 20))
    ran = await run(road, "n=0; while true; do head -c 4000000 /dev/zero > f$n; n=$((n+1)); sleep 0.05; done")
    assert ran["data"]["signal"] == "SIGKILL" and not ran["data"]["timedOut"], ran
    assert any("more than 20 MB" in warning for warning in ran["warnings"])
    view_id = ran["data"]["view"]["viewId"]
    assert (await run(road, "true", view_id))["error"]["code"] == "limit_exceeded"
    assert (await road.call("view.drop", view_id))["ok"] and [
        path.name for path in road.root.iterdir() if path.name[0] == "f"
    ] == []


async def test_no_view_is_made_when_all_together_hold_too_much(road: Road) -> None:
    road.app.services.provide(Views, Views(road.home / "views", max_all_bytes=3 << 20))
    first = await run(road, "head -c 4000000 /dev/zero > big")
    refused = await run(road, "echo x > x")
    assert refused["error"]["code"] == "limit_exceeded", refused
    await road.data("view.drop", first["data"]["view"]["viewId"])
    assert (await run(road, "echo x > x"))["ok"]


async def test_one_client_does_not_use_up_the_room_of_others(road: Road) -> None:
    road.app.services.provide(Views, Views(road.home / "views", max_all_bytes=7 << 20))
    await run(road, "head -c 4000000 /dev/zero > big")
    assert (await run(road, "echo x > x"))["error"]["code"] == "limit_exceeded"
    other = replace(LOCAL, id="local:other")
    assert (await run(road, "echo x > x", principal=other))["ok"]


async def test_one_client_has_so_many_and_old_ones_are_dropped(road: Road) -> None:
    made = [(await run(road, "true"))["data"]["view"]["viewId"] for _ in range(3)]
    for number in range(MAX_OF_ONE - 3):
        place = road.home / "views" / f"COPY{number}"
        place.mkdir()
        (place / "view.json").write_bytes((road.home / "views" / made[0] / "view.json").read_bytes())
    assert (await run(road, "true"))["error"]["code"] == "limit_exceeded"
    long_ago = time.time() - MAX_AGE_S - 60
    for place in (road.home / "views").glob("COPY*"):
        os.utime(place, (long_ago, long_ago))
    assert (await run(road, "true"))["ok"]
    assert len((await road.data("view.list"))["views"]) == 4 and not list((road.home / "views").glob("COPY*"))


async def test_what_a_crash_left_is_removed(road: Road) -> None:
    await run(road, "echo x > x")
    left = road.home / "views" / "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    (left / "0" / "upper" / "deep").mkdir(parents=True)
    (left / "0" / "upper" / "deep").chmod(0)
    (left / ".view.json").write_text("{")
    assert len((await road.data("view.list"))["views"]) == 1
    assert not left.exists() and len(list((road.home / "views").iterdir())) == 1


async def test_what_a_program_left_when_the_service_died_counts(road: Road) -> None:
    view_id = (await run(road, "head -c 4000000 /dev/zero > big"))["data"]["view"]["viewId"]
    record = road.home / "views" / view_id / "view.json"
    # As it is while the first program runs.
    record.write_text(json.dumps({**json.loads(record.read_text()), "changed": None, "stored": 0}))
    road.app.services.provide(Views, Views(road.home / "views", max_all_bytes=6_000_000))
    (view,) = (await road.data("view.list"))["views"]
    assert (view["changes"], view["bytes"] > 4_000_000) == (None, True), view
    assert (await run(road, "echo x > x"))["error"]["code"] == "limit_exceeded"
    assert (await road.call("view.drop", view_id))["ok"] and (await run(road, "echo x > x"))["ok"]


async def test_what_a_crash_left_of_a_removal_is_removed(road: Road) -> None:
    for place in (
        road.home / "views" / "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        road.home / "views-kept" / "01ARZ3NDEKTSV4RRFFQ69G5FAW",
    ):
        for name in (".removed-1/full", "0/upper/full"):
            (place / name).mkdir(parents=True)
    assert (await road.data("view.list"))["views"] == []
    assert not list((road.home / "views").iterdir()) and not list((road.home / "views-kept").iterdir())


async def test_texts_that_both_changed_are_merged_when_asked_and_others_are_named(road: Road) -> None:
    ran = await run(road, "sed -i s/^3$/three/ a.txt; printf x >> b.bin; echo n > new")
    view_id = ran["data"]["view"]["viewId"]
    lines = (road.root / "a.txt").read_text().replace("15\n", "fifteen\n")
    (road.root / "a.txt").write_text(lines)
    (road.root / "b.bin").write_bytes(b"\1" * 100)
    shown = await road.data("view.show", view_id)
    assert (shown["merged"], shown["conflicts"]) == (["a.txt"], ["b.bin"])
    # The difference is that of the merge, which takes nothing of the owner's text back.
    assert "-3\n+three\n" in shown["diff"] and "fifteen" not in shown["diff"], shown["diff"]
    assert [(each["additions"], each["deletions"]) for each in shown["changes"] if each["path"] == "a.txt"] == [(1, 1)]
    refused = await road.call("view.keep", view_id, options={"merge": True})
    assert refused["error"]["code"] == "conflict" and refused["error"]["details"]["paths"] == ["b.bin"]
    assert (road.root / "a.txt").read_text() == lines and not (road.root / "new").exists()
    kept = await road.call("view.keep", view_id, input={"paths": ["a.txt", "new"]}, options={"merge": True})
    assert kept["data"]["merged"] == ["a.txt"], kept
    found = (road.root / "a.txt").read_text().split()
    assert (found[3], found[15]) == ("three", "fifteen")
    undone = await road.call("file.undo", input={"operationId": kept["operationId"]})
    assert undone["ok"] and (road.root / "a.txt").read_text() == lines and not (road.root / "new").exists()


async def test_overlapping_changes_are_a_conflict(road: Road) -> None:
    ran = await run(road, "sed -i s/^3$/three/ a.txt")
    (road.root / "a.txt").write_text((road.root / "a.txt").read_text().replace("3\n", "drei\n", 1))
    shown = await road.data("view.show", ran["data"]["view"]["viewId"])
    assert (shown["merged"], shown["conflicts"]) == ([], ["a.txt"])
    refused = await road.call("view.keep", ran["data"]["view"]["viewId"], options={"merge": True})
    assert refused["error"]["code"] == "conflict" and "drei" in (road.root / "a.txt").read_text()


async def test_a_hard_link_of_a_file_is_no_change_of_it(road: Road, tmp_path: Path) -> None:
    ran = await run(road, "echo more >> a.txt")
    (tmp_path / "backup").hardlink_to(road.root / "a.txt")
    assert (await road.data("view.show", ran["data"]["view"]["viewId"]))["conflicts"] == []
    assert (await road.call("view.keep", ran["data"]["view"]["viewId"]))["ok"]


async def test_a_view_of_which_a_part_was_kept_goes_on_from_there(road: Road) -> None:
    ran = await run(road, "echo more >> a.txt; echo x > later")
    view_id = ran["data"]["view"]["viewId"]
    await road.data("view.keep", view_id, input={"paths": ["a.txt"]})
    await run(road, "echo again >> a.txt", view_id)
    shown = await road.data("view.show", view_id)
    assert shown["conflicts"] == [] and [each["path"] for each in shown["changes"]] == ["a.txt", "later"]
    await road.data("view.keep", view_id)
    assert (road.root / "a.txt").read_text().endswith("19\nmore\nagain\n")


async def test_without_room_for_evidence_a_view_is_kept_with_a_warning_and_never_dropped(road: Road) -> None:
    road.app.services.provide(ArtifactBroker, ArtifactBroker(road.home / "artifacts", Bounds(free_bytes=1 << 62)))
    view_id = (await run(road, "echo x > x"))["data"]["view"]["viewId"]
    dropped = await road.call("view.drop", view_id, options={"evidence": True})
    assert dropped["error"]["code"] == "limit_exceeded", dropped
    assert len((await road.data("view.show", view_id))["changes"]) == 1 and not (road.root / "x").exists()
    kept = await road.call("view.keep", view_id, options={"evidence": True})
    assert kept["ok"] and kept["data"]["artifact"] is None and (road.root / "x").read_text() == "x\n", kept
    assert any("evidence was not stored" in warning for warning in kept["warnings"])
