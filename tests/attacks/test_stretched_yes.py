"""A yes is not stretched: to other rules of the scope, to another file than it reads."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.config.schema import Config
from computer_linker.model.scope import Scope
from computer_linker.service.app import open_app
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

GOOD, EVIL = "open('good', 'w').write('1')\n", "open('evil', 'w').write('1')\n"


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as opened:
        yield opened


def people(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def after_the_yes(road: Road, change: Callable[[], object], op: str, target: str, **parts: Any) -> dict[str, Any]:
    """A person says yes to a call; then something changes; then the call comes again."""
    refused = await road.call(op, target, **parts)
    assert people(road).answer(refused["error"]["details"]["approvalId"], "yes"), refused
    change()
    return await road.call(op, target, **parts)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_a_parent_behind_a_link_is_refused_before_anyone_is_asked(road: Road) -> None:
    """`link/../build.py` reads as `build.py`, and is `sub/build.py`."""
    write(road.root / "build.py", GOOD)
    write(road.root / "sub/build.py", EVIL)
    (road.root / "sub/deep").mkdir()
    (road.root / "link").symlink_to("sub/deep")
    for command in (["python3", "link/../build.py"], ["make", "--file=link/../build.py"]):
        refused = await road.call("command.run", ".", input={"command": command})
        assert refused["error"]["code"] == "invalid_request" and "symbolic link" in refused["error"]["message"], refused
    assert people(road).waiting() == [] and not (road.root / "evil").exists()


async def test_a_folder_that_became_a_link_behind_a_parent_counts_as_changed(road: Road) -> None:
    write(road.root / "build.py", GOOD)
    write(road.root / "sub/build.py", EVIL)
    (road.root / "sub/deep").mkdir()
    (road.root / "link").mkdir()

    def exchange() -> None:
        (road.root / "link").rmdir()
        (road.root / "link").symlink_to("sub/deep")

    parts: dict[str, Any] = {"input": {"command": ["python3", "link/../build.py"]}}
    done = await after_the_yes(road, exchange, "command.run", ".", **parts)
    assert not done["ok"] and not (road.root / "evil").exists() and not (road.root / "good").exists(), done


@asynccontextmanager
async def changing(tmp_path: Path, **changed: Any) -> AsyncIterator[tuple[Road, Callable[[], object]]]:
    """A service, and what gives its scope other rules."""
    (tmp_path / "root").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "home").mkdir(mode=0o700)
    scope = folder_scope(tmp_path / "root", confirm="all", network=False)
    now = [scope]

    def config() -> Config:
        return Config(machine_id="test-machine", machine_name="test", scopes=[Scope.from_wire(now[0])])

    def change() -> None:
        policy = {**scope["policy"], **{name: value for name, value in changed.items() if name != "roots"}}
        roots = [str(tmp_path / name) for name in changed.get("roots", ["root"])]
        now[0] = {**scope, "roots": roots, "policy": policy}

    async with open_app(tmp_path / "home", config) as app:
        yield Road(app, tmp_path / "root", tmp_path / "home"), change


CHANGED: list[dict[str, Any]] = [
    {"roots": ["other"]},
    {"roots": ["root", "other"]},
    {"network": True},
    {"sandbox": "off", "allowedCommands": ["touch *"]},
    {"allowProtected": True},
]


@pytest.mark.parametrize("changed", CHANGED, ids=str)
@pytest.mark.parametrize("op", ["file.write", "command.run"])
async def test_a_yes_is_not_used_under_other_rules_than_it_was_given_under(
    tmp_path: Path, op: str, changed: dict[str, Any]
) -> None:
    """The person was shown the folder, the boundary and the network as they were then."""
    given: dict[str, Any] = {"content": "1"} if op == "file.write" else {"command": ["touch", "made"]}
    target = {"file.write": "made", "command.run": "."}[op]
    async with changing(tmp_path, **changed) as (road, change):
        done = await after_the_yes(road, change, op, target, input=given)
        assert done["error"]["code"] == "confirm_required" and "other rules" in done["error"]["message"], done
        again = await road.call(op, target, input=given)
        assert again["error"]["code"] == "confirm_required", "the yes is used up, and the next one is asked about anew"
        [asked] = people(road).waiting()
        assert people(road).answer(asked.id, "yes") and (await road.call(op, target, input=given))["ok"]
        made = [name for name in ("root", "other") if (tmp_path / name / "made").exists()]
        assert made == [changed.get("roots", ["root"])[0]]


async def test_a_question_that_waits_while_the_rules_change_is_put_anew(tmp_path: Path) -> None:
    async with changing(tmp_path, network=True) as (road, change):
        parts: dict[str, Any] = {"input": {"command": ["touch", "made"]}}
        before = (await road.call("command.run", ".", **parts))["error"]["details"]["approvalId"]
        change()
        after = (await road.call("command.run", ".", **parts))["error"]["details"]["approvalId"]
        [asked] = people(road).waiting()
        assert asked.id == after != before and asked.about is not None
        assert any("with the network" in line for line in asked.about.lines)
