"""Attacks on keeping a view: chosen paths, ids, attributes of the superuser, and programs that stay behind."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "d").mkdir(parents=True)
    outside.mkdir()
    (root / "a.txt").write_text("a\n")
    (outside / "canary").write_text("canary\n")
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"])]) as opened:
        yield opened


def everything(place: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(place)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in sorted(place.rglob("*"))
    }


async def viewed(road: Road, script: str) -> str:
    line = {"command": ["sh", "-c", script]}
    ran = await road.data("command.run", ".", input=line, options={"view": True, "timeoutSeconds": 60})
    view_id: str = ran["view"]["viewId"]
    return view_id


PATHS = [
    "../outside/canary", "d/../../outside/canary", "/etc/passwd", "%2e%2e/outside/canary", "d/\0x", "..", "link/canary", "../root/a.txt",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
async def test_no_chosen_path_leads_out_of_the_view(road: Road, path: str, tmp_path: Path) -> None:
    before, outside = everything(road.root), everything(tmp_path / "outside")
    view_id = await viewed(road, "echo x > a.txt; ln -s ../outside link; mkdir -p outside; echo evil > outside/canary")
    refused = await road.call("view.keep", view_id, input={"paths": [path]})
    assert refused["error"]["code"] in ("path_out_of_scope", "invalid_request", "not_found"), refused
    assert everything(road.root) == before and everything(tmp_path / "outside") == outside
    assert len((await road.data("view.show", view_id))["changes"]) == 4


async def test_a_link_that_leads_out_is_named_and_nothing_is_written_through_it(road: Road, tmp_path: Path) -> None:
    outside = everything(tmp_path / "outside")
    view_id = await viewed(road, "ln -s ../outside link; ln -s /etc/passwd abs; ln -s ../a.txt d/in; ln -s $PWD/d own")
    shown = await road.data("view.show", view_id)
    assert {(each["path"], each["target"]) for each in shown["outside"]} == {
        ("link", "../outside"),
        ("abs", "/etc/passwd"),
    }
    await road.data("view.keep", view_id)
    assert (road.root / "link").is_symlink() and everything(tmp_path / "outside") == outside


IDS = ["..", ".", "", "../views", "%2e%2e", "../../outside", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "view.json"]


@pytest.mark.parametrize("view_id", IDS)
async def test_no_name_that_is_not_an_id_finds_a_view(road: Road, view_id: str) -> None:
    await viewed(road, "echo x > a.txt")
    before = everything(road.root)
    for op in ("view.show", "view.keep", "view.drop"):
        assert not (await road.call(op, view_id))["ok"]
    ran = await road.call("command.run", ".", input={"command": ["touch", "made"]}, options={"view": view_id or ".."})
    assert not ran["ok"] and everything(road.root) == before
    assert len((await road.data("view.list"))["views"]) == 1


async def test_another_clients_view_is_neither_run_in_nor_decided(road: Road) -> None:
    view_id = await viewed(road, "echo x > a.txt")
    other = replace(LOCAL, id="oauth:other", session="s2", connection="c2")
    before = everything(road.home / "views")
    given: dict[str, Any] = {"input": {"command": ["touch", "made"]}, "options": {"view": view_id}}
    assert (await road.call("command.run", ".", principal=other, **given))["error"]["code"] == "not_found"
    for op in ("view.show", "view.keep", "view.drop"):
        assert (await road.call(op, view_id, principal=other))["error"]["code"] == "not_found"
    assert everything(road.home / "views") == before and (road.root / "a.txt").read_text() == "a\n"


FORGED = """
import os
made = []
os.mkdir('n')
for name in ('trusted.overlay.opaque', 'trusted.overlay.whiteout', 'trusted.overlay.redirect', 'trusted.overlay.metacopy',
             'security.capability', 'system.posix_acl_access', 'user.overlay.opaque', 'user.overlay.whiteout', 'user.mark'):
    for path in ('a.txt', 'd', 'n'):
        try:
            os.setxattr(path, name, b'y')
            made.append(name)
        except OSError:
            pass
print(sorted(set(made)))
"""


async def test_only_the_users_own_attributes_are_kept(road: Road) -> None:
    line = {"command": ["python3", "-c", FORGED]}
    ran = await road.data("command.run", ".", input=line, options={"view": True})
    assert "user.mark" in ran["stdout"] and "trusted" not in ran["stdout"], ran
    kept = await road.call("view.keep", ran["view"]["viewId"])
    assert kept["ok"], kept
    for name in ("a.txt", "d", "n"):
        assert os.listxattr(road.root / name) == ["user.mark"], name


DAEMON = """
import os, time  # MARK
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
while True:
    with open('beat', 'a') as file:
        file.write('x')
    time.sleep(0.01)
"""


async def test_no_program_of_a_view_outlives_its_command(road: Road) -> None:
    mark = f"{os.getpid()}-{road.root.parent.name}"
    line = {"command": ["sh", "-c", f'python3 -c "{DAEMON.replace("MARK", mark)}" & while ! test -s beat; do :; done']}
    ran = await road.data("command.run", ".", input=line, options={"view": True, "timeoutSeconds": 60})
    view_id = ran["view"]["viewId"]
    upper = road.home / "views" / view_id / "0" / "upper" / "beat"
    first = upper.stat().st_size
    shown = await road.data("view.show", view_id)
    assert (shown["running"], [each["path"] for each in shown["changes"]]) == (False, ["beat"])
    alive = [each for each in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _read(each)]
    assert first > 0 and alive == []
    await road.data("view.keep", view_id)
    assert (road.root / "beat").stat().st_size == first


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
