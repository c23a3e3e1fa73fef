"""The root of a sandboxed command is built from held descriptors: names that are swapped meanwhile lead nowhere."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from computer_linker.computer.facets.processes import Mount, NamesChanged, Staging
from computer_linker.errors import Conflict, LimitExceeded
from computer_linker.providers.processes.runner import Limits, Runner
from computer_linker.providers.sandbox.boundary import Confinement, Folder, SpawnPlan
from computer_linker.providers.sandbox.places import SYSTEM, SYSTEM_FACTS, tool_folders
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.another_user import place_of_another, run_as_another
from support.launching import closed, output_of, processes, staged
from support.road import Road, folder_scope

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

CANARY = "CANARY-51d2"
TRIES = 60
RACE_S = 20.0
"""When closed names were mounted by path, one to five of sixty tries read the folder outside, and every run made a file there."""
_SWAPPER = """
import ctypes, os, sys
folder = os.open(sys.argv[1], os.O_PATH)
libc, one, other = ctypes.CDLL(None), sys.argv[2].encode(), sys.argv[3].encode()
print("swapping", flush=True)
while True:
    libc.renameat2(folder, one, folder, other, 2)
    for _ in range(200):
        pass
"""


@contextmanager
def swapped(folder: Path, name: str, link: str) -> Iterator[None]:
    """A process that exchanges a name and a link beside it, again and again."""
    argv = [sys.executable, "-I", "-S", "-c", _SWAPPER, str(folder), name, link]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None and swapper.stdout.readline() == b"swapping\n"
            yield
        finally:
            swapper.kill()


async def raced(road: Road, script: str) -> tuple[list[str], dict[str, int]]:
    """What the commands printed that ran while names were swapped, and how the others were answered."""
    printed: list[str] = []
    codes: dict[str, int] = {}
    until = time.monotonic() + RACE_S
    for _ in range(TRIES):
        if time.monotonic() > until:
            break
        ran = await road.call("command.run", ".", input={"command": ["sh", "-c", script]})
        code = "ok" if ran["ok"] else ran["error"]["code"]
        codes[code] = codes.get(code, 0) + 1
        printed += [ran["data"]["stdout"] + ran["data"]["stderr"]] if ran["ok"] else []
    return printed, codes


def last_of(root: Path) -> Path:
    """The folder that is looked at last, and so was closed by its path before."""
    return root / [entry.name for entry in os.scandir(root) if entry.is_dir()][-1]


async def test_a_protected_name_swapped_for_a_link_shows_no_folder_outside(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (outside / "canary.txt").write_text(CANARY)
    for number in range(60):
        (root / f"q{number}" / ".git").mkdir(parents=True)
    last = last_of(root)
    (last / "lnk").symlink_to(outside)
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"], sandbox="required")]) as road:
        with swapped(last, ".git", "lnk"):
            printed, codes = await raced(road, f"cat {last.name}/.git/canary.txt")
    print(codes)
    assert [text for text in printed if CANARY in text] == []
    assert set(codes) <= {"ok", "conflict"} and codes["ok"]


async def test_a_held_folder_swapped_for_a_link_is_not_written_outside(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    for number in range(60):
        (root / f"w{number}").mkdir(parents=True)
        (root / f"w{number}" / "private.txt").write_text(CANARY)
    last = last_of(root)
    (root / "lnk").symlink_to(outside)
    scope = folder_scope(root, allowedCommands=["*"], sandbox="required", deniedPaths=["*/private.txt"])
    async with Road.open(tmp_path, [scope]) as road:
        with swapped(root, last.name, "lnk"):
            _, codes = await raced(road, f"touch {last.name}/written; true")
    print(codes)
    assert list(outside.iterdir()) == []
    assert set(codes) <= {"ok", "conflict"} and codes["ok"]


_IN_A_HOME = """
import os, sys
from pathlib import Path
import anyio
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope

async def main() -> None:
    home, outside = Path.home(), Path(sys.argv[1])
    (home / ".nvm").symlink_to(outside)
    (home / ".cargo").symlink_to(outside)
    (home / ".deno" / "bin").mkdir(parents=True)
    (home / ".deno" / "bin" / "tool").write_text("shown")
    (home / "project").mkdir()
    scopes = [folder_scope(home / "project", "project", allowedCommands=["*"], sandbox="required")]
    scopes.append(folder_scope(home, "whole", allowedCommands=["*"], sandbox="required"))
    script = f"cat {home}/.nvm/canary.txt {home}/.cargo/bin/canary.txt; cat {home}/.deno/bin/tool; echo x > {home}/.deno/bin/y"
    async with Road.open(Path(sys.argv[2]), scopes) as road:
        road.app.services.provide(Sandbox, Sandbox(road.app.computer, road.home, kinds=(sys.argv[3],)))
        for scope in ("project", "whole"):
            print((await road.data("command.run", ".", scope=scope, input={"command": ["sh", "-c", script]}))["stdout"])

anyio.run(main)
"""


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_a_tool_folder_that_became_a_link_shows_nothing_of_where_it_leads(tmp_path: Path, kind: str) -> None:
    outside, home, state = tmp_path / "outside", tmp_path / "home-of-user", tmp_path / "state"
    for folder in (outside / "bin", home, state):
        folder.mkdir(parents=True)
    for place in (outside, outside / "bin"):
        (place / "canary.txt").write_text(CANARY)
    environ = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    argv = [sys.executable, "-c", _IN_A_HOME, str(outside), str(state), kind]
    ran = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=240, check=False)
    assert (ran.stdout, ran.returncode) == ("shown\nshown\n", 0), ran.stderr
    if kind == "bubblewrap":
        assert sorted(path.name for path in (home / ".deno" / "bin").iterdir()) == ["tool"]


async def test_each_kind_of_closing_closes(tmp_path: Path) -> None:
    for name in ("kept", "fixed", "gone/below"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "note").write_text(CANARY)
    (tmp_path / "secret").write_text(CANARY)
    (tmp_path / "link").symlink_to("kept")
    mounts = [
        closed(tmp_path, "kept", "held"),
        closed(tmp_path, "fixed", "read_only"),
        closed(tmp_path, "link", "held"),
    ]
    mounts += [
        closed(tmp_path, "secret"),
        closed(tmp_path, "gone"),
        Mount("hidden", f"{tmp_path}/never", device=1, inode=1),
    ]
    script = (
        f"cd {tmp_path}; for n in kept fixed gone secret link; do mv $n $n.2 || rm -r $n; done 2>/dev/null; "
        "echo more > kept/new; echo x > fixed/new; echo x > secret; cat secret; ls -A gone; ls -A; cat fixed/note"
    )
    fd = os.open(tmp_path, os.O_PATH)
    try:
        async with processes() as facet:
            child = await facet.spawn(staged((fd,), Mount("shown", str(tmp_path)), *mounts, script=script))
            told = await output_of(child)
    finally:
        os.close(fd)
    assert told.startswith("fixed\ngone\nkept\nlink\nsecret\n" + CANARY) and told.count(CANARY) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fixed", "gone", "kept", "link", "secret"]
    assert (tmp_path / "kept" / "new").exists() and not (tmp_path / "fixed" / "new").exists()
    assert (tmp_path / "secret").read_text() == (tmp_path / "gone" / "below" / "note").read_text() == CANARY


@pytest.mark.parametrize("swap", ["another folder", "a link", "a link above"])
async def test_a_name_that_is_another_now_starts_nothing(tmp_path: Path, swap: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub" / ".git").mkdir(parents=True)
    (outside / ".git").mkdir(parents=True)
    mount = closed(root, "sub/.git", "read_only")
    (root / "sub").rename(root / "away") if swap == "a link above" else (root / "sub" / ".git").rename(root / "away")
    if swap == "another folder":
        (root / "sub" / ".git").mkdir()
    else:
        (root / "sub" / ("" if swap == "a link above" else ".git")).symlink_to(outside)
    fd = os.open(root, os.O_PATH)
    try:
        async with processes() as facet:
            shown = Mount("shown", str(root))
            with pytest.raises(NamesChanged):
                await facet.spawn(staged((fd,), shown, mount, script=f"touch {root}/ran"))
    finally:
        os.close(fd)
    assert not (root / "ran").exists() and list(outside.iterdir()) == [outside / ".git"]


@pytest.mark.parametrize("swap", ["link", "folder"])
async def test_a_root_that_is_another_now_starts_nothing(tmp_path: Path, swap: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    fd = os.open(root, os.O_PATH)
    root.rename(tmp_path / "away")
    # The held folder has its new path, and is found there; then that one is swapped too.
    (tmp_path / "away").rename(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    root.symlink_to(outside) if swap == "link" else root.mkdir()
    try:
        async with processes() as facet:
            with pytest.raises(NamesChanged):
                await facet.spawn(staged((fd,), Mount("shown", str(root)), script=f"touch {root}/ran"))
    finally:
        os.close(fd)
    assert list(outside.iterdir()) == [] and not (root / "ran").exists()


async def test_a_thousand_names_are_closed_and_too_many_refused(tmp_path: Path) -> None:
    names = [f"folder-{number}/with-a-longer-name/.env" for number in range(1000)]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(CANARY)
    mounts = [closed(tmp_path, name) for name in names]
    more = [Mount("hidden", f"{tmp_path}/{'missing/' * 400}{number}") for number in range(3000)]
    fd = os.open(tmp_path, os.O_PATH)
    try:
        async with processes() as facet:
            shown = Mount("shown", str(tmp_path))
            child = await facet.spawn(staged((fd,), shown, *mounts, script=f"cat {tmp_path}/*/*/.env 2>&1 | tail -n 3"))
            told = await output_of(child)
            with pytest.raises(LimitExceeded):
                await facet.spawn(staged((fd,), shown, *mounts, *more, script=f"touch {tmp_path}/ran"))
    finally:
        os.close(fd)
    assert told.count("Permission denied") == 3 and CANARY not in told
    assert not (tmp_path / "ran").exists()


@asynccontextmanager
async def planned(tmp_path: Path, script: str) -> AsyncIterator[tuple[Runner, SpawnPlan, dict[str, str]]]:
    """A command that is planned and not started yet."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / ".env").write_text(CANARY)
    async with Road.open(tmp_path, [folder_scope(root)]) as road:
        sandbox = Sandbox(road.app.computer, road.home, kinds=("bubblewrap",))
        boundary = await sandbox.probe()
        fd = os.open(root, os.O_PATH)
        confinement = Confinement(writable=(Folder(fd, str(root)),), cwd=str(root), cwd_fd=fd)
        scanned = await sandbox.scan(confinement, boundary)
        line = ["/bin/sh", "-c", script]
        plan, env = sandbox.wrap(line, confinement, {"PATH": "/usr/bin:/bin"}, boundary=boundary, scanned=scanned)
        plan.closes.append(fd)
        yield Runner(road.app.computer), plan, env
        plan.release()
        await sandbox.aclose()


async def test_a_name_that_changed_after_the_plan_is_looked_at_again(tmp_path: Path) -> None:
    async with planned(tmp_path, "cat sub/.env sub/.env.local; echo ran") as (runner, plan, env):
        sub = tmp_path / "root" / "sub"
        for name in ("new", ".env.local"):
            (sub / name).write_text(CANARY)
        (sub / "new").replace(sub / ".env")
        outcome = await runner.run(plan, env, Limits(20, 4000))
    assert (outcome.stdout, outcome.stderr.count("Permission denied")) == ("ran\n", 2)


async def test_a_root_that_stays_another_is_refused_as_a_conflict(tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with planned(tmp_path, "touch ran") as (runner, plan, env):
        shutil.rmtree(root)
        root.mkdir()
        with pytest.raises(Conflict):
            await runner.run(plan, env, Limits(20, 4000))
        assert list(root.iterdir()) == []


@asynccontextmanager
async def sandbox_of(tmp_path: Path) -> AsyncIterator[tuple[Sandbox, Runner]]:
    async with Road.open(tmp_path, [folder_scope(tmp_path)]) as road:
        sandbox = Sandbox(road.app.computer, road.home, kinds=("bubblewrap",))
        assert (await sandbox.probe()).holds
        yield sandbox, Runner(road.app.computer)
        await sandbox.aclose()


async def ran_in(sandbox: Sandbox, runner: Runner, confinement: Confinement, script: str) -> str:
    boundary = await sandbox.probe()
    scanned = await sandbox.scan(confinement, boundary)
    line = ["/bin/sh", "-c", script]
    plan, env = sandbox.wrap(line, confinement, {"PATH": "/usr/bin:/bin"}, boundary=boundary, scanned=scanned)
    outcome = await runner.run(plan, env, Limits(20, 40_000))
    return outcome.stdout + outcome.stderr


async def test_what_closes_a_name_cannot_be_unmounted_from_a_namespace_inside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub" / ".git").mkdir(parents=True)
    (root / "sub" / ".env").write_text(CANARY)
    tried = (
        "umount sub/.env; umount -l sub/.env; cat sub/.env; umount sub/.git; mount -o remount,bind,rw sub/.git; "
        "touch sub/.git/x; umount -l .; mkdir /tmp/again; mount --bind sub /tmp/again; cat /tmp/again/.env; "
        "mount --rbind sub /tmp/again; umount /tmp/again/.env; cat /tmp/again/.env; touch /tmp/again/.git/x"
    )
    async with sandbox_of(tmp_path) as (sandbox, runner):
        fd = os.open(root, os.O_PATH)
        confinement = Confinement(writable=(Folder(fd, str(root)),), cwd=str(root), cwd_fd=fd, nests=True)
        told = await ran_in(sandbox, runner, confinement, f"unshare -Urm sh -c 'echo inside; {tried}'")
        os.close(fd)
    assert told.startswith("inside\n") and CANARY not in told
    assert list((root / "sub" / ".git").iterdir()) == []


async def test_the_whole_disk_can_be_the_root(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(CANARY)
    mounts = [Mount("shown", "/"), *(Mount("room", path) for path in ("/proc", "/var/tmp", str(Path.home())))]
    mounts += [Mount("devices", "/dev")]
    mounts += [closed(tmp_path, "secret"), Mount("hidden", "/etc/shadow")]
    script = f"ls -d /usr/bin/env; ls {Path.home()}; cat {tmp_path}/secret /etc/shadow; touch {Path.home()}/cl-made && echo made"
    fd = os.open("/", os.O_PATH)
    try:
        async with processes() as facet:
            launch = staged((fd,), script=script)
            child = await facet.spawn(replace(launch, staging=Staging(tuple(mounts), (fd,), 1 << 24)))
            told = await output_of(child)
    finally:
        os.close(fd)
    assert told.startswith("/usr/bin/env\nmade\n") and told.count("Permission denied") == 2
    assert not (Path.home() / "cl-made").exists()


async def test_a_place_of_its_own_opens_inside_what_is_closed(tmp_path: Path) -> None:
    """An agent keeps its login below the service's state, which is hidden where a root shows it."""
    async with sandbox_of(tmp_path) as (sandbox, runner):
        own = sandbox.state / "agents" / "one"
        own.mkdir(parents=True)
        (own / "login").write_text("mine")
        (sandbox.state / "owner").write_text(CANARY)
        fds = [os.open(place, os.O_PATH) for place in (tmp_path, own)]
        confinement = Confinement(
            writable=(Folder(fds[0], str(tmp_path)),), own=(Folder(fds[1], str(own)),), cwd=str(tmp_path), cwd_fd=fds[0]
        )
        told = await ran_in(
            sandbox,
            runner,
            confinement,
            f"cat {own}/login; ls -A {sandbox.state}; echo new > {own}/login; cat {sandbox.state}/owner",
        )
        for fd in fds:
            os.close(fd)
        assert told.startswith("mineagents\n") and CANARY not in told
        assert (own / "login").read_text() == "new\n"


_AS_ANOTHER = """
import sys
from pathlib import Path
import anyio
from support.road import Road, folder_scope

async def main() -> None:
    root = Path(sys.argv[1]) / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / ".env").write_text(sys.argv[2])
    async with Road.open(Path(sys.argv[1]), [folder_scope(root, allowedCommands=["*"], sandbox="required")]) as road:
        script = "cat sub/.env; mv sub/.env sub/open; cat sub/open; echo x > made; id -u"
        ran = await road.data("command.run", ".", input={"command": ["sh", "-c", script]})
        print(ran["boundary"].partition(":")[0], ran["stdout"].strip(), (root / "made").exists())

anyio.run(main)
"""


async def test_an_ordinary_user_gets_the_same_root() -> None:
    with place_of_another() as place:
        assert run_as_another(_AS_ANOTHER, place, CANARY) == "bubblewrap 65534 True\n"


async def test_the_root_holds_what_is_granted_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "beside").mkdir()
    async with sandbox_of(tmp_path) as (sandbox, runner):
        fd = os.open(root, os.O_PATH)
        confinement = Confinement(writable=(Folder(fd, str(root)),), cwd=str(root), cwd_fd=fd)
        told = await ran_in(
            sandbox, runner, confinement, f"ls -A /; echo; ls -A {tmp_path}; echo; ls -A /dev; echo x > /dev/null"
        )
        os.close(fd)
    top, beside, devices = (set(part.split()) for part in told.split("\n\n"))
    granted = (
        *SYSTEM,
        *SYSTEM_FACTS,
        "/proc",
        "/dev",
        "/tmp",
        "/var/tmp",
        str(Path.home()),
        str(root),
        *tool_folders(),
    )
    assert top <= {Path(path).parts[1] for path in granted}
    assert beside == {"root"}
    links = {"fd", "stdin", "stdout", "stderr", "core", "ptmx"}
    assert devices == {"null", "zero", "full", "random", "urandom", "tty", "shm", "pts", *links}
