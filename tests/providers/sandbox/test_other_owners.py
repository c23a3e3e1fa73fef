"""A superuser's sandbox has users beside the superuser: their ids on the host are nobody else's.

Issue 19, defect of outside suites: as root the sandbox mapped one id, so `tar xf` of files of other owners failed.
"""

import os
import shutil
import signal
import tarfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.local.linux.id_range import COUNT, other_ids
from computer_linker.system.proc_files import children, read
from support.launching import processes_of
from support.road import Road, folder_scope
from support.waiting import until_awaited

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
    pytest.mark.skipif(other_ids() is None, reason="not the superuser, or no range of ids can be mapped"),
]
FIRST = other_ids() or 0
CANARY = "CANARY-77ab"


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    (tmp_path / "root").mkdir()
    async with Road.open(
        tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="required")]
    ) as opened:
        yield opened


async def run(road: Road, script: str) -> dict[str, Any]:
    return await road.data("command.run", ".", input={"command": ["sh", "-c", script]})


def archive(path: Path) -> None:
    """An archive as another computer's users made it: a folder and a file of user 1000, and a file of www-data."""
    with tarfile.open(path, "w") as made:
        for name, uid, text in (("tree", 1000, None), ("tree/made", 1000, b"text"), ("tree/page", 33, b"page")):
            entry = tarfile.TarInfo(name)
            entry.uid, entry.gid, entry.mode = uid, uid, 0o700 if text is None else 0o600
            entry.type = tarfile.DIRTYPE if text is None else tarfile.REGTYPE
            entry.size = len(text or b"")
            made.addfile(entry, BytesIO(text or b""))


async def test_tar_extracts_files_of_other_owners_and_they_can_be_used_afterwards(road: Road) -> None:
    archive(road.root / "of-others.tar")
    ran = await run(
        road,
        "tar xf of-others.tar && stat -c '%n %u %g %a' tree tree/* && cat tree/made && echo more >> tree/page && touch tree/new",
    )
    assert (ran["exitCode"], ran["stderr"]) == (0, "")
    assert ran["stdout"] == "tree 1000 1000 700\ntree/made 1000 1000 600\ntree/page 33 33 600\ntext"
    assert (road.root / "tree").stat().st_uid == FIRST + 1000 and (
        road.root / "tree" / "page"
    ).stat().st_gid == FIRST + 33
    assert (await run(road, "rm -r tree"))["exitCode"] == 0 and not (road.root / "tree").exists()


async def test_a_program_can_run_as_another_user_inside(road: Road) -> None:
    script = "import os; os.setgroups([]); os.setgid(1000); os.setuid(1000); print(os.getuid(), open('/proc/self/status').read())"
    ran = await road.data("command.run", ".", input={"command": ["python3", "-c", script]})
    assert ran["exitCode"] == 0 and ran["stdout"].startswith("1000 "), ran
    capabilities = [line.split()[1] for line in ran["stdout"].splitlines() if line.startswith("CapEff")]
    assert [int(each, 16) for each in capabilities] == [0]


async def test_files_of_the_hosts_other_users_are_as_closed_as_before(road: Road, tmp_path: Path) -> None:
    """The capabilities hold for the ids of the namespace alone."""
    theirs = road.root / "theirs"
    theirs.write_text(CANARY)
    theirs.chmod(0o600)
    os.chown(theirs, 1000, 1000)
    ran = await run(
        road, "cat theirs; chown 0 theirs; chmod 666 theirs; echo x > theirs; chown 65535:65534 own 2>&1; id -u"
    )
    assert CANARY not in ran["stdout"] and ran["stderr"].count("theirs") == 4
    found = theirs.stat()
    assert (found.st_uid, found.st_mode & 0o777, theirs.read_text()) == (1000, 0o600, CANARY)


async def test_closed_names_stay_closed_to_a_superuser_with_capabilities(road: Road) -> None:
    (road.root / ".env").write_text(CANARY)
    (road.root / ".ssh").mkdir()
    (road.root / ".ssh" / "id_ed25519").write_text(CANARY)
    ran = await run(
        road,
        "cat .env; ls -A .ssh; chmod 644 .env; chown 1000 .env; chown 0 .env; mv .env e; cat .env e .ssh/*; cat /etc/shadow; ls -A .ssh;"
        "setpriv --reuid 65535 --clear-groups cat .env; setpriv --reuid 65534 --clear-groups cat .env",
    )
    assert CANARY not in ran["stdout"] + ran["stderr"] and "root:" not in ran["stdout"]
    assert ran["stderr"].count("cat: .env: Permission denied") == 4
    assert (road.root / ".env").read_text() == CANARY and (road.root / ".env").stat().st_uid == 0


async def test_a_nested_namespace_uncovers_nothing(road: Road) -> None:
    (road.root / ".env").write_text(CANARY)
    ran = await run(
        road,
        "unshare -Urm sh -c 'umount .env; umount -l .env; cat .env' 2>&1; unshare -m true 2>&1; mount -t tmpfs t /mnt 2>&1;"
        "unshare -U sh -c 'cat .env' 2>&1; umount .env 2>&1; nsenter -t 1 -m cat .env 2>&1; mknod d b 8 0 2>&1; chroot / cat .env 2>&1",
    )
    assert CANARY not in ran["stdout"] and ran["stdout"].count("denied") + ran["stdout"].count("permitted") >= 5
    assert not (road.root / "d").exists()


def test_the_range_belongs_to_no_account_and_no_container() -> None:
    """The mapped ids own no file of the host: they lie where distributions and systemd assign none."""
    assert 1_879_048_192 <= FIRST <= FIRST + COUNT <= 2_147_352_576


async def test_the_helper_that_maps_ids_is_started_again_when_it_was_killed(road: Road) -> None:
    processes = processes_of(road.app.computer)
    assert (await run(road, "id -u"))["stdout"] == "0\n"

    def helpers() -> list[int]:
        assert processes.launcher_pid is not None
        return [pid for pid in children(processes.launcher_pid) if read(f"/proc/{pid}/comm") == b"linker-id-maps\n"]

    (old,) = helpers()
    os.kill(old, signal.SIGKILL)
    # A child that was forked before it was killed can get no ids any more, and starts nothing.
    command = {"command": ["sh", "-c", "chown 1000 . && stat -c %u . && chown 0 ."]}

    async def has_run() -> bool:
        ran = await road.call("command.run", ".", input=command)
        assert ran["ok"] or "user namespace" in ran["error"]["message"] or "staging" in ran["error"]["message"], ran
        return bool(ran["ok"] and ran["data"]["stdout"] == "1000\n")

    await until_awaited(has_run)
    assert helpers() != [old]
