"""What a command finds in the scope's own folder: copies of secrets where builds put them, and nothing of another command's."""

import shutil
from pathlib import Path

import pytest

from support.road import Road

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]


@pytest.mark.parametrize("folder", ["dist", "build", "target", "vendor", "packages/app/dist"])
async def test_a_copy_of_a_secret_in_what_was_built_is_closed(tmp_path: Path, folder: str) -> None:
    async with Road.open(tmp_path) as road:
        built = tmp_path / "root" / folder
        built.mkdir(parents=True)
        (built / ".env").write_text("CANARY")
        (built / ".git").mkdir()
        (built / ".git" / "config").write_text("[core]\n")
        (built / "index.html").write_text("a page")
        words = f"cat {folder}/.env; echo x >> {folder}/.git/config; cat {folder}/index.html"
        told = await road.data("command.run", ".", scope="app", input={"command": ["sh", "-c", words]})
        assert told["boundary"].startswith("bubblewrap")
        assert told["stdout"] == "a page"
        assert (built / ".git" / "config").read_text() == "[core]\n"


async def test_a_command_has_nothing_of_its_launcher_or_of_another_command(tmp_path: Path) -> None:
    """Each child is forked ahead and takes one order: descriptors, environment and processes of others stay theirs."""
    async with Road.open(tmp_path) as road:
        start = {"command": ["sleep", "30"], "env": {"DEBUG": "CANARY-ENV"}}
        other = await road.data("command.start", ".", scope="app", input=start)
        words = (
            "for p in /proc/[0-9]*; do ls -l $p/fd; tr '\\0' '\\n' < $p/environ; tr '\\0' ' ' < $p/cmdline; done; "
            "ls /proc | grep -c '^[0-9]'"
        )
        told = await road.data("command.run", ".", scope="app", input={"command": ["sh", "-c", words]})
        await road.data("command.stop", other["processId"], scope="app", options={"graceSeconds": 0})
        assert told["boundary"].startswith("bubblewrap")
        assert "socket:" not in told["stdout"] and "CANARY-ENV" not in told["stdout"]
        assert "sleep 30" not in told["stdout"]
        assert int(told["stdout"].split()[-1]) <= 5
        kept = [line for line in told["stdout"].splitlines() if " -> /" in line]
        assert all(line.partition(" -> ")[2].startswith(("/dev/null", "/proc/")) for line in kept)
