"""Attacks on a view: mounts, descriptors that outlive it, links, devices, forged marks, and races while it is kept."""

import mmap
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.views.probe import is_released
from computer_linker.providers.views.store import MANY, Views
from support.road import Road, folder_scope
from support.waiting import wait_for

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[MANY, 0], ids=["few", "many"])
async def road(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Road]:
    """A view with few changes is kept by copying, one with many without where nothing can reach it."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for name in ("d/inner", "kept", ".git"):
        (root / name).mkdir(parents=True)
    outside.mkdir()
    for name, text in (("a.txt", "a\n"), ("d/f", "f\n"), ("d/.env", "SECRET=1\n"), (".git/config", "[core]\n")):
        (root / name).write_text(text)
    (outside / "canary").write_text("canary\n")
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"], network=True)]) as opened:
        opened.app.services.use(Views).many = request.param
        yield opened


def everything(place: Path) -> dict[str, Any]:
    """All names with kind, mode, link count and content."""
    found = {}
    for path in sorted(place.rglob("*")):
        about = path.lstat()
        content: Any = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(place))] = (about.st_mode, about.st_nlink, content)
    return found


async def run(road: Road, script: str, view: Any = True, *, program: str = "sh") -> dict[str, Any]:
    line = ["sh", "-c", script] if program == "sh" else ["python3", "-c", script]
    return await road.data("command.run", ".", input={"command": line}, options={"view": view, "timeoutSeconds": 60})


TRICKS = [
    'unshare -Urm sh -c "umount -l $PWD; echo x > $PWD/evil; echo x > a.txt"',
    'unshare -Urm sh -c "mount --bind / d; ls d/inner; echo x > d$PWD/evil"',
    'unshare -Urm sh -c "mount -o remount,rw,bind $PWD; echo x > evil"; mount -o remount,rw $PWD; echo x > evil2',
    'unshare -Urm sh -c "mkdir -p u w m; mount -t overlay o -o lowerdir=$PWD,upperdir=u,workdir=w,userxattr m; echo x > m/evil"',
    "for p in /proc/[0-9]*; do echo x > $p/root$PWD/evil; echo x > $p/cwd/evil; done",
    "for f in /proc/[0-9]*/fd/*; do echo x > $f/evil; done 2>/dev/null; for f in /proc/self/fd/*; do ls $f/upper $f/../upper; done",
    "cd ..; cd ..; echo x > evil; ls -la / > /dev/null; find / -maxdepth 3 -name upper",
    "cat /proc/self/mountinfo; p=$(sed -n 's/.*upperdir=\\([^,]*\\).*/\\1/p' /proc/self/mountinfo | head -1); echo x > $p/evil",
]


@pytest.mark.parametrize("script", TRICKS)
async def test_no_mount_leads_to_the_folder_or_the_state(road: Road, script: str, tmp_path: Path) -> None:
    before, outside = everything(road.root), everything(tmp_path / "outside")
    ran = await run(road, f"{script} ; true")
    assert everything(road.root) == before and everything(tmp_path / "outside") == outside
    assert str(road.home) not in ran["stdout"]
    await road.data("view.drop", ran["view"]["viewId"])
    assert everything(road.root) == before and list((road.home / "views").iterdir()) == []


MARKS = [
    "mknod b b 7 0; mknod c c 1 1; mknod z c 0 0; mkfifo p; python3 -c \"import socket; socket.socket(1).bind('s')\"",
    "rm d/f; mknod d/f c 0 0; mknod .git/config c 0 0; mknod d/.env c 0 0",
    "mknod new c 0 0; mkdir w; mknod w/.env c 0 0; mknod w/.git c 0 0",
    "python3 -c \"import os\nfor n in ('user.overlay.opaque', 'user.overlay.whiteouts', 'user.overlay.whiteout', "
    "'user.overlay.redirect', 'user.overlay.metacopy', 'user.overlay.origin', 'user.overlay.overlay.opaque'):\n"
    " for p in ('d', 'a.txt', '.'):\n"
    "  try: os.setxattr(p, n, b'y')\n"
    '  except OSError: pass"',
]


@pytest.mark.parametrize("script", MARKS)
async def test_no_device_and_no_forged_mark_is_kept(road: Road, script: str) -> None:
    before = everything(road.root)
    ran = await run(road, f"{script} ; true")
    await road.call("view.keep", ran["view"]["viewId"])
    after = everything(road.root)
    assert {name: after[name] for name in before if name not in ("d/f", ".", "d")} == {
        name: before[name] for name in before if name not in ("d/f", ".", "d")
    }
    assert all(os.path.isdir(road.root / name) or path_kind(road.root / name) for name in after)
    assert not any(
        name.startswith("user.overlay")
        for path in road.root.rglob("*")
        if not path.is_symlink()
        for name in os.listxattr(path)
    )


def path_kind(path: Path) -> bool:
    return path.is_file() or path.is_symlink()


async def test_a_folder_with_a_secret_in_it_is_not_removed(road: Road) -> None:
    ran = await run(road, "rm -rf d 2>/dev/null; mv d gone 2>/dev/null; mv d/inner d/i2; true")
    await road.call("view.keep", ran["view"]["viewId"])
    assert (road.root / "d/.env").read_text() == "SECRET=1\n"


LINKS = [
    "ln a.txt hard; echo x >> hard; ln d/f a.txt -f",
    "ln d/.env open; cat open; ln .git/config config; echo x >> config",
    "ln /etc/hostname out; ln -L /proc/self/exe exe; ln /proc/self/fd/0 fd; ln -s ../outside up; echo x > up/evil",
]


@pytest.mark.parametrize("script", LINKS)
async def test_no_link_shares_a_file_with_the_view(road: Road, script: str, tmp_path: Path) -> None:
    before = everything(road.root)
    ran = await run(road, f"{script} ; true")
    assert everything(road.root) == before and "SECRET" not in ran["stdout"]
    await road.call("view.keep", ran["view"]["viewId"])
    upper = {path.stat().st_ino for path in (road.home / "views").rglob("*") if path.is_file()}
    assert not upper & {path.stat().st_ino for path in road.root.rglob("*") if path.is_file() and not path.is_symlink()}
    assert (road.root / ".git/config").read_text() == "[core]\n" and (road.root / "d/.env").read_text() == "SECRET=1\n"
    assert everything(tmp_path / "outside") == {"canary": everything(tmp_path / "outside")["canary"]}


HOLDER = """
import os, signal
open('kept/x', 'w').write('shown\\n')
print('{mark}', flush=True)
signal.pause()
"""


async def outliving(road: Road) -> tuple[str, int, int]:
    """A view with descriptors of a file and a folder in it that outlive its program: of its mount, opened by way of /proc."""
    mark = f"mark-{os.getpid()}-{road.root.parent.name}"
    started = await road.data(
        "command.start", ".", input={"command": ["python3", "-c", HOLDER.format(mark=mark)]}, options={"view": True}
    )
    await road.data("command.read", started["processId"], options={"waitSeconds": 30, "waitFor": mark})
    held = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "cmdline").read_bytes() and (process / "exe").readlink().name.startswith(
                "python"
            ):
                folder = os.open(process / "cwd/kept", os.O_RDONLY)
                held.append((os.open("x", os.O_RDWR, dir_fd=folder), folder))
        except OSError:
            continue
    await road.data("command.stop", started["processId"], options={"signal": "kill"})
    ((file, folder),) = [each for each in held if os.fstat(each[0]).st_size == 6][:1]
    return started["viewId"], file, folder


async def test_a_descriptor_that_outlives_the_view_does_not_reach_what_was_kept(road: Road) -> None:
    view_id, file, folder = await outliving(road)
    try:
        await road.data("view.keep", view_id)
        os.pwrite(file, b"evil!\n", 0)
        assert (road.root / "kept/x").read_text() == "shown\n"
        for act in (
            lambda: os.open("evil", os.O_CREAT | os.O_WRONLY, dir_fd=folder),
            lambda: os.mkdir("e", dir_fd=folder),
        ):
            try:
                act()
            except OSError:
                continue
        assert sorted(path.name for path in (road.root / "kept").iterdir()) == ["x"]
        assert list((road.home / "views").iterdir()) == []
    finally:
        os.close(file)
        os.close(folder)


def sent(descriptor: int) -> Any:
    """A descriptor that is only on its way through a socket."""
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], [descriptor])
    os.close(descriptor)
    return ours, theirs


def mapped(descriptor: int) -> Any:
    found = mmap.mmap(descriptor, 1)
    os.close(descriptor)
    return found


HOLDS: dict[str, tuple[int, Any]] = {
    "written": (os.O_WRONLY, None),
    "read": (os.O_RDONLY, None),
    "named": (os.O_PATH, None),
    "sent": (os.O_RDONLY, sent),
    "mapped": (os.O_RDWR, mapped),
}


@pytest.mark.parametrize("kind", HOLDS)
async def test_whatever_holds_a_file_of_a_view_is_known_to_the_kernel(road: Road, kind: str) -> None:
    view_id, file, folder = await outliving(road)
    flags, keep = HOLDS[kind]
    held: Any = os.open(f"/proc/self/fd/{file}", flags)
    os.close(file)
    os.close(folder)
    held = held if keep is None else keep(held)
    place = road.home / "views" / view_id
    try:
        assert not is_released(place, [str(place / "0" / "upper")])
    finally:
        if isinstance(held, int):
            os.close(held)
        elif isinstance(held, tuple):
            for each in held:
                each.close()
        else:
            held.close()
    # The kernel ends an overlay a moment after the last of them.
    wait_for(lambda: is_released(place, [str(place / "0" / "upper")]))
    await road.data("view.keep", view_id)
    assert (road.root / "kept/x").read_text() == "shown\n" and (road.root / "kept/x").stat().st_nlink == 1


async def test_a_process_in_a_folder_of_a_view_is_known_to_the_kernel(road: Road) -> None:
    view_id, file, folder = await outliving(road)
    os.close(file)
    place = road.home / "views" / view_id
    child = subprocess.Popen(["sleep", "1000"], cwd=f"/proc/self/fd/{folder}", pass_fds=[folder])
    os.close(folder)
    try:
        assert not is_released(place, [str(place / "0" / "upper")])
    finally:
        child.kill()
        child.wait()
    wait_for(lambda: is_released(place, [str(place / "0" / "upper")]))


async def test_what_is_swapped_behind_a_kept_view_is_never_read_through(road: Road, tmp_path: Path) -> None:
    canary = tmp_path / "outside/canary"
    swap = (
        "import os, sys\nfolder = int(sys.argv[1])\nwhile True:\n"
        " os.symlink(sys.argv[2], 's', dir_fd=folder); os.rename('s', 'x', src_dir_fd=folder, dst_dir_fd=folder)\n"
        " os.close(os.open('s', os.O_CREAT | os.O_WRONLY, dir_fd=folder)); os.rename('s', 'x', src_dir_fd=folder, dst_dir_fd=folder)\n"
    )
    view_id, file, folder = await outliving(road)
    attacker = subprocess.Popen(["python3", "-c", swap, str(folder), str(canary)], pass_fds=[folder])
    try:
        for _ in range(15):
            kept = await road.call("view.keep", view_id)
            found = road.root / "kept/x"
            assert found.is_symlink() or not found.exists() or found.read_bytes() in (b"", b"shown\n")
            if kept["ok"]:
                break
            assert kept["error"]["code"] in ("conflict", "not_found", "execution_failed"), kept
    finally:
        attacker.kill()
        attacker.wait()
        os.close(file)
        os.close(folder)
    assert canary.read_text() == "canary\n"


RACE = """
import os
while True:
    os.rename('kept', 'away'); os.symlink('../outside', 'kept')
    os.unlink('kept'); os.rename('away', 'kept')
"""


async def test_no_link_put_in_the_folder_while_a_view_is_kept_leads_outside(road: Road, tmp_path: Path) -> None:
    views = [
        (await run(road, f"mkdir -p kept/new{n}; echo x > kept/evil{n}; echo x > kept/new{n}/y"))["view"]
        for n in range(12)
    ]
    attacker = subprocess.Popen(["python3", "-c", RACE], cwd=road.root)
    try:
        answers = [await road.call("view.keep", view["viewId"]) for view in views]
    finally:
        attacker.kill()
        attacker.wait()
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["canary"]
    codes = {answer["error"]["code"] for answer in answers if not answer["ok"]}
    assert codes <= {"conflict", "not_found", "path_out_of_scope", "already_exists"}, codes
    # Either the folder or the one it was renamed to has all of a kept view.
    place = next(
        road.root / name
        for name in ("kept", "away")
        if (road.root / name).is_dir() and not (road.root / name).is_symlink()
    )
    for number in range(12):
        assert (place / f"evil{number}").exists() == (place / f"new{number}" / "y").exists()


def test_the_probe_imports_nothing_from_the_folder_that_the_service_was_started_in(tmp_path: Path) -> None:
    """A client starts the service in its own folder, which is usually a scope's: programs write there."""
    root, state, mark = tmp_path / "root", tmp_path / "state", tmp_path / "mark"
    root.mkdir()
    state.mkdir()
    for name in ("pathlib.py", "shutil.py", "ctypes.py"):
        (root / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    (root / "computer_linker").mkdir()
    (root / "computer_linker" / "__init__.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    code = (
        "import sys, pathlib\n"
        "from computer_linker.providers.views.probe import can_overlay\n"
        "can_overlay(pathlib.Path(sys.argv[1]), [sys.argv[2]])"
    )
    argv = [sys.executable, "-I", "-c", code, str(state), str(root)]
    subprocess.run(argv, cwd=root, env=dict(os.environ), check=True, timeout=240)
    assert not mark.exists()
