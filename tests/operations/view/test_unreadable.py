"""What a program closes to its own user in a view: shown, never kept, and no reason to lose the program's output."""

import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from computer_linker.providers.views.store import Views
from support.road import Road, folder_scope

SCRIPT = '''
mkdir new listed; echo x > new/in; chmod 000 new; echo x > listed/in; chmod 444 listed
echo y > closed; chmod 000 closed; chmod 000 old; rm gone; echo z > fine; echo said
'''

async def main():
    assert os.geteuid() != 0
    place, is_copy = Path(sys.argv[2]), sys.argv[3] == "copy"
    root = place / "root"
    (root / "old").mkdir(parents=True)
    (root / "old/in").write_text("in\\n")
    (root / "gone").write_text("y\\n")
    async with Road.open(place, [folder_scope(root, allowedCommands=["*"])]) as road:
        if is_copy:
            road.app.services.provide(Views, Views(road.home / "views", probe=lambda _state, _roots: False))
        given = {"command": ["sh", "-c", SCRIPT]}
        ran = await road.data("command.run", ".", input=given, options={"view": True})
        assert ran["stdout"] == "said\\n" and ran["view"]["added"] == 4, ran
        view_id = ran["view"]["viewId"]
        shown = await road.data("view.show", view_id)
        assert sorted(each["path"] for each in shown["refused"]) == ["closed", "listed", "new", "old"], shown
        kept = await road.data("view.keep", view_id)
        assert sorted(kept["paths"]) == ["fine", "gone"] and len(kept["refused"]) == 4, kept
        assert sorted(path.name for path in root.iterdir()) == ["fine", "old"]
        assert (root / "old/in").read_text() == "in\\n"
        second = await road.data("command.run", ".", input=given, options={"view": True})
        assert (await road.call("view.drop", second["view"]["viewId"], options={"evidence": True}))["ok"]
        (root / "fine").chmod(0)
        closed = await road.call("command.run", ".", input={"command": ["sh", "-c", "echo said"]}, options={"view": True})
        if is_copy:
            assert closed["error"]["code"] == "os_permission_required" and "fine" in closed["error"]["message"], closed
        else:
            assert closed["data"]["stdout"] == "said\\n", closed

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["overlay", "copy"])
def test_what_a_program_closed_is_never_kept_and_its_output_is_not_lost(tmp_path: Path, kind: str) -> None:
    as_user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    child = [sys.executable, "-c", CHILD, str(Path(__file__).parents[2]), str(tmp_path), kind]
    done = subprocess.run([*as_user, *child], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
