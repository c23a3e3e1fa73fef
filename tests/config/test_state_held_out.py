"""A scope around the state folder: whatever a client tries, the state stays out of it."""

import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.store import ensure, update
from computer_linker.service.app import open_app
from computer_linker.service.settings import live_config
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

TOKEN = "CANARY-TOKEN-0123456789abcdef"


@pytest.fixture
async def around(tmp_path: Path) -> AsyncIterator[Road]:
    """A scope whose root contains the state folder, at inner/state, with links that lead there."""
    home = tmp_path / "inner" / "state"
    ensure(home, TOKEN)
    (tmp_path / "inner" / "plain.txt").write_text("plain\n")
    (tmp_path / "link").symlink_to("inner/state")
    (tmp_path / "way").symlink_to("inner")
    scope = folder_scope(tmp_path, allowedCommands=["*"], sandbox="required")
    update(home, lambda value: value["scopes"].append(scope))
    async with open_app(home, live_config(home)) as app:
        yield Road(app, tmp_path, home)


READS: list[tuple[str, str, dict[str, Any]]] = [
    ("file.read", "inner/state/config.json", {}),
    ("file.read", "INNER/State/config.json", {}),
    ("file.read", "inner/./x/../state/config.json", {}),
    ("file.read", "link/config.json", {}),
    ("file.read", "way/state/config.json", {}),
    ("file.list", "inner/state", {}),
    ("file.stat", "link/config.json", {}),
    ("file.copy", "inner/state", {"input": {"destination": "copied"}}),
    ("file.copy", "inner/state/config.json", {"input": {"destination": "copied.json"}}),
    ("command.run", "inner/state", {"input": {"command": ["cat", "config.json"]}}),
]
WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("file.write", "inner/state/config.json", {"input": {"content": "{}"}}),
    ("file.write", "link/config.json", {"input": {"content": "{}"}}),
    ("file.create", "inner/state/new.json", {"input": {"content": "{}"}}),
    ("file.mkdir", "inner/state/new", {}),
    ("file.patch", "inner/state/config.json", {"input": {"edits": [{"oldText": "127.0.0.1", "newText": "0.0.0.0"}]}}),
    ("file.move", "inner/state", {"input": {"destination": "moved"}}),
    ("file.move", "inner", {"input": {"destination": "moved"}}),
    (
        "file.move",
        "inner/plain.txt",
        {"input": {"destination": "inner/state/config.json"}, "options": {"overwrite": True}},
    ),
    ("file.delete", "inner/state", {"options": {"recursive": True}}),
    ("file.delete", "inner", {"options": {"recursive": True}}),
]


@pytest.mark.parametrize(("op", "target", "parts"), [*READS, *WRITES])
async def test_no_operation_reaches_the_state(around: Road, op: str, target: str, parts: dict[str, Any]) -> None:
    before = (around.home / "config.json").read_bytes()
    envelope = await around.call(op, target, **parts)
    assert not envelope["ok"], envelope
    assert TOKEN not in json.dumps(envelope)
    assert (around.home / "config.json").read_bytes() == before
    assert not (around.root / "copied").exists() and not (around.root / "moved").exists()
    assert (around.root / "inner" / "plain.txt").read_text() == "plain\n"


@pytest.mark.parametrize(
    ("op", "target", "parts"),
    [
        ("file.tree", ".", {}),
        ("file.list", "inner", {}),
        (
            "file.find",
            ".",
            {"input": {"pattern": "**/config.json"}, "options": {"includeHidden": True, "gitignore": False}},
        ),
        ("file.search", ".", {"input": {"query": "CANARY"}, "options": {"includeHidden": True, "gitignore": False}}),
    ],
)
async def test_no_listing_or_search_shows_the_state(around: Road, op: str, target: str, parts: dict[str, Any]) -> None:
    data = await around.data(op, target, **parts)
    assert TOKEN not in json.dumps(data)
    assert "config.json" not in json.dumps(data)


async def test_a_copy_of_what_is_around_leaves_the_state_behind(around: Road) -> None:
    await around.call("file.copy", "inner", input={"destination": "copied"})
    assert not (around.root / "copied" / "state").exists()


async def test_a_command_inside_its_boundary_sees_no_state(around: Road) -> None:
    envelope = await around.call("command.run", ".", input={"command": ["cat", "inner/state/config.json"]})
    assert TOKEN not in json.dumps(envelope)
    await around.call("command.run", ".", input={"command": ["touch", "inner/state/evil"]})
    assert not (around.home / "evil").exists()


SECOND_PATH = """
import sys
from pathlib import Path
from computer_linker.computer.local.portable.roots import Roots
from computer_linker.config.runtime import forbidden_root, state_inside
top = Path(sys.argv[1])
state = top / "x" / "deep" / "state"
for root in (top / "alias", top / "alias" / "deep", top / "x", top / "other"):
    print(state_inside(str(root), state), Roots(state).hold(str(root)).closed)
print(forbidden_root(str(top / "alias" / "deep" / "state" / "audit"), state))
"""


@pytest.mark.skipif(
    shutil.which("unshare") is None, reason="a folder is mounted twice in a namespace of the test's own"
)
def test_a_state_that_is_mounted_under_a_second_path_is_found(tmp_path: Path) -> None:
    for folder in ("x/deep/state/audit", "alias", "other"):
        (tmp_path / folder).mkdir(parents=True)
    mount = 'mount --bind "$1/x" "$1/alias" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "-rm", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, SECOND_PATH]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "unshare" in ran.stderr:
        pytest.skip(ran.stderr)
    assert ran.stdout.splitlines() == [
        "deep/state ('deep', 'state')",
        "state ('state',)",
        "deep/state ('deep', 'state')",
        "None None",
        "lies in the service's own state folder",
    ], ran.stderr
