"""Issue 19, `.netrc` fixtures: test suites make such files in their own folders, and programs trust it in the home folder alone."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from support.road import Road, folder_scope

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]
SCRIPT = """
import netrc, os
os.makedirs("made/by/a/test")
for name in (".netrc", ".npmrc"):
    with open("made/by/a/test/" + name, "w") as file:
        file.write("machine example login someone password fixture")
print(netrc.netrc("made/by/a/test/.netrc").authenticators("example")[0])
with open(".netrc", "w") as file:
    file.write("machine example login someone password fixture")
"""


async def run(tmp_path: Path) -> dict[str, Any]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"])]) as road:
        return await road.data("command.run", ".", input={"command": ["python3", "-c", SCRIPT]})


async def test_a_netrc_that_a_test_makes_in_its_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "root" / "made").mkdir(parents=True)
    ran = await run(tmp_path)
    assert (ran["exitCode"], ran["stdout"]) == (0, "someone\n"), ran
    made = tmp_path / "root" / "made" / "by" / "a" / "test"
    assert (made / ".netrc").exists() and (tmp_path / "root" / ".netrc").exists()
    assert "machine" in (made / ".netrc").read_text()


async def test_in_the_home_folder_it_is_taken_away_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "root").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "root"))
    await run(tmp_path)
    assert not (tmp_path / "root" / ".netrc").exists()


async def test_one_that_is_there_is_read_by_no_one(tmp_path: Path) -> None:
    """Its name is a secret's in every folder."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / ".netrc").write_text("machine example login someone password CANARY")
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"])]) as road:
        ran = await road.data("command.run", ".", input={"command": ["cat", ".netrc"]})
        assert "CANARY" not in ran["stdout"] and ran["exitCode"] != 0
        assert await road.code("file.read", ".netrc") == "permission_denied"
