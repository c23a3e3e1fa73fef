"""A root stays the folder that the owner added: a link or another folder in its place is not opened."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.diagnose import diagnose
from computer_linker.config.live import LiveConfig
from computer_linker.config.roots import ROOTS_NAME
from computer_linker.config.store import ensure, update
from computer_linker.service.app import open_app
from support.commands import command
from support.road import FOLDER_CAPABILITIES, Road, folder_scope

pytestmark = pytest.mark.anyio

SECRET = "CANARY-PRIVATE"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state folder with scope `outer`, and scope `inner` for a folder inside it."""
    folder = tmp_path / "state"
    ensure(folder, "t" * 32)
    (tmp_path / "nest" / "b").mkdir(parents=True)
    (tmp_path / "nest" / "b" / "key.txt").write_text("inner")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key.txt").write_text(SECRET)
    scopes = [folder_scope(tmp_path / "nest", "outer", allowedCommands=["*"]), folder_scope(tmp_path / "nest" / "b", "inner")]  # fmt: skip
    update(folder, lambda value: value.update(scopes=scopes))
    return folder


async def read_inner(home: Path, op: str = "file.read", **parts: Any) -> dict[str, Any]:
    """What a service that starts now answers in scope `inner`."""
    async with open_app(home, LiveConfig(home, fresh_for_s=0)) as app:
        return await Road(app, home, home).call(op, "key.txt", scope="inner", **parts)


def relink(tmp_path: Path) -> None:
    (tmp_path / "nest" / "b").rename(tmp_path / "nest" / "b.old")
    (tmp_path / "nest" / "b").symlink_to(tmp_path / "private")


async def test_a_root_that_became_a_link_is_refused_after_a_reload_and_a_restart(home: Path, tmp_path: Path) -> None:
    assert (await read_inner(home))["data"]["content"] == "inner"
    relink(tmp_path)
    update(home, lambda value: value.update(ownerToken="n" * 32))
    for op, parts in (("file.read", {}), ("file.write", {"input": {"content": "x"}}), ("file.stat", {})):
        refused = await read_inner(home, op, **parts)
        assert refused["error"]["code"] == "path_out_of_scope", refused
        assert "scope confirm inner" in refused["error"]["message"]
    assert (tmp_path / "private" / "key.txt").read_text() == SECRET


async def test_a_command_of_a_refused_scope_does_not_start(home: Path, tmp_path: Path) -> None:
    await read_inner(home)
    relink(tmp_path)
    update(home, lambda value: value["scopes"][1].update(policy={"allowedCommands": ["*"]}))
    async with open_app(home, LiveConfig(home, fresh_for_s=0)) as app:
        road = Road(app, home, home)
        refused = await road.call("command.run", ".", scope="inner", input={"command": ["touch", "made"]})
        assert refused["error"]["code"] == "path_out_of_scope"
        assert (await road.call("file.list", ".", scope="outer"))["ok"], "the other scope works on"
    assert not (tmp_path / "private" / "made").exists()


async def test_a_link_put_there_between_the_load_and_the_first_use_opens_nothing(home: Path, tmp_path: Path) -> None:
    async with open_app(home, LiveConfig(home)) as app:
        road = Road(app, home, home)
        assert app.config.scope("inner") is not None
        relink(tmp_path)
        refused = await road.call("file.read", "key.txt", scope="inner")
        assert refused["error"]["code"] == "path_out_of_scope"


@pytest.mark.parametrize("outer_writes", [True, False])
async def test_another_plain_folder_is_refused_only_where_a_client_could_have_put_it(
    home: Path, tmp_path: Path, outer_writes: bool
) -> None:
    if not outer_writes:
        few = [name for name in FOLDER_CAPABILITIES if name != "fs:write"]
        update(home, lambda value: value["scopes"][0].update(capabilities=few))
    await read_inner(home)
    (tmp_path / "nest" / "b").rename(tmp_path / "nest" / "b.old")
    (tmp_path / "nest" / "b").mkdir()
    (tmp_path / "nest" / "b" / "key.txt").write_text("another")
    answer = await read_inner(home)
    assert answer["ok"] is not outer_writes, answer


async def test_the_owner_confirms_what_a_root_is_now(home: Path, tmp_path: Path) -> None:
    await read_inner(home)
    relink(tmp_path)
    found = [finding for finding in diagnose(LiveConfig(home).current(), home) if finding.code == "root_changed"]
    assert [(finding.severity, finding.scope) for finding in found] == [("error", "inner")]
    assert "scope confirm inner" in found[0].remedy
    live = LiveConfig(home, fresh_for_s=0)
    assert live.current().scopes[1].refused
    done = command(home, "scope", "confirm", "inner", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["roots"] == {str(tmp_path / "nest" / "b"): str(tmp_path / "private")}
    assert not live.current().scopes[1].refused, "a running service takes it up"
    assert (await read_inner(home))["data"]["content"] == SECRET
    assert (home / ROOTS_NAME).stat().st_mode & 0o777 == 0o600


async def test_a_link_that_the_owner_named_works_until_it_leads_elsewhere(tmp_path: Path, home: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nest" / "b")
    update(home, lambda value: value["scopes"][1].update(roots=[str(link)]))
    assert (await read_inner(home))["data"]["content"] == "inner"
    link.unlink()
    link.symlink_to(tmp_path / "private")
    assert (await read_inner(home))["error"]["code"] == "path_out_of_scope"


async def test_the_root_of_another_scope_is_neither_moved_nor_removed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "nest" / "deep").mkdir()
    deep = folder_scope(tmp_path / "nest" / "deep" / "er", "deeper")
    (tmp_path / "nest" / "deep" / "er").mkdir()
    update(home, lambda value: value["scopes"].append(deep))
    async with open_app(home, LiveConfig(home, fresh_for_s=0)) as app:
        road = Road(app, home, home)
        for target in ("b", "deep", "deep/er"):
            moved = await road.call("file.move", target, scope="outer", input={"destination": "elsewhere"})
            removed = await road.call("file.delete", target, scope="outer", options={"recursive": True})
            assert [one["error"]["details"]["rule"] for one in (moved, removed)] == ["root_of_another_scope"] * 2, (
                target
            )
        assert (await road.call("file.write", "b/new.txt", scope="outer", input={"content": "x"}))["ok"]
        code = "import os\nfor n in ('b', 'deep', 'deep/er'):\n  try: os.rename(n, 'gone-' + n[:1])\n  except OSError as e: print(n)"
        ran = await road.call("command.run", ".", scope="outer", input={"command": ["/usr/bin/python3", "-c", code]})
        if "protected names" not in ran["data"]["boundary"]:
            pytest.skip("no boundary here holds names")
        assert ran["data"]["stdout"].split() == ["b", "deep", "deep/er"]
    assert sorted(os.listdir(tmp_path / "nest")) == ["b", "deep"]


@pytest.fixture
def later(home: Path, tmp_path: Path) -> Path:
    """Scope `inner` has a folder that does not exist yet, inside that of `outer`; a service has read that."""
    scopes = [
        folder_scope(tmp_path / "nest", "outer", allowedCommands=["*"]),
        folder_scope(tmp_path / "nest" / "later", "inner"),
    ]
    update(home, lambda value: value.update(scopes=scopes))
    return tmp_path / "nest" / "later"


async def test_a_root_that_another_scope_made_first_is_refused(home: Path, later: Path) -> None:
    async with open_app(home, LiveConfig(home, fresh_for_s=0)) as app:
        road = Road(app, home, home)
        assert (await road.call("file.read", "key.txt", scope="inner"))["error"]["code"] == "path_out_of_scope"
        await road.call("file.create", "later/key.txt", scope="outer", input={"content": "planted"}, options={"createParents": True})  # fmt: skip
        assert (later / "key.txt").read_text() == "planted"
        refused = await road.call("file.read", "key.txt", scope="inner")
        assert refused["error"]["code"] == "path_out_of_scope", refused
    refused = await read_inner(home)
    assert refused["error"]["code"] == "path_out_of_scope" and "scope confirm inner" in refused["error"]["message"]
    run = command(home, "scope", "confirm", "inner")
    assert run.returncode == 0, run.stderr
    assert (await read_inner(home))["data"]["content"] == "planted"


async def test_a_link_to_elsewhere_is_no_root_that_was_missing(home: Path, later: Path, tmp_path: Path) -> None:
    update(home, lambda value: value.update(scopes=value["scopes"][1:]))
    assert (await read_inner(home))["error"]["code"] == "not_found"
    later.symlink_to(tmp_path / "private")
    assert (await read_inner(home))["error"]["code"] == "path_out_of_scope"


async def test_a_missing_root_that_no_client_could_make_is_the_owners(home: Path, later: Path) -> None:
    update(home, lambda value: value.update(scopes=value["scopes"][1:]))
    assert (await read_inner(home))["error"]["code"] == "not_found"
    later.mkdir()
    (later / "key.txt").write_text("mine")
    assert (await read_inner(home))["data"]["content"] == "mine"
