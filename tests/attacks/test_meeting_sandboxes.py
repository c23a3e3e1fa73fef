"""Two commands whose sandboxes close different names meet at a socket; what one closes stays closed to both."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.model.principal import Principal
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio

CANARY = "CANARY-7d20"
TAKE = """
import os, socket, sys, time
place, source, target = sys.argv[1:]
os.chdir(os.path.dirname(place))
link = socket.socket(socket.AF_UNIX)
print("ready", flush=True)
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        link.connect(os.path.basename(place))
        break
    except OSError:
        time.sleep(0.01)
_, (folder,), _, _ = socket.recv_fds(link, 1, 1)
print("got", sorted(os.listdir(folder)), flush=True)
try:
    os.rename(source, target, src_dir_fd=folder, dst_dir_fd=folder)
    print("renamed", flush=True)
finally:
    link.send(b"x")
"""
GIVE = """
import os, socket, sys
place, folder = sys.argv[1:]
os.chdir(os.path.dirname(place))
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.path.basename(place))
listener.listen(1)
listener.settimeout(1)
link, _ = listener.accept()
socket.send_fds(link, [b"x"], [os.open(folder, os.O_RDONLY)])
link.recv(1)
print("passed")
"""


@asynccontextmanager
async def service(tmp_path: Path, scopes: list[dict[str, Any]]) -> AsyncIterator[Road]:
    """A service whose commands run in bubblewrap."""
    async with Road.open(tmp_path, scopes) as road:
        found = await road.app.services.use(Sandbox).probe()
        if found.kind != "bubblewrap":
            pytest.skip(f"bubblewrap cannot be had here: {found.detail}")
        yield road


async def meet(
    road: Road, place: Path, folder: Path, names: tuple[str, str], *, giver: dict[str, Any], taker: dict[str, Any]
) -> None:
    """One command passes its folder to another, which tries to rename a name in it."""
    argv = ["python3", "-c", TAKE, str(place), *names]
    started = await road.data("command.start", ".", input={"command": argv}, **taker)
    asked = {key: value for key, value in taker.items() if key != "options"}
    said = ""
    with anyio.fail_after(30):
        while "ready" not in said and "Error" not in said:
            said += await printed(road, started["processId"], asked)
        given = ["python3", "-c", GIVE, str(place), str(folder)]
        await road.data("command.run", ".", input={"command": given}, **giver)
    await road.call("command.stop", started["processId"], **asked)
    said += await printed(road, started["processId"], asked)
    assert "renamed" not in said, said


async def printed(road: Road, process: str, asked: dict[str, Any]) -> str:
    read = await road.data("command.read", process, options={"waitFor": "ready|Error"}, **asked)
    return "".join(chunk["text"] for chunk in read["chunks"])


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    folder = tmp_path / "outer"
    (folder / "inner").mkdir(parents=True)
    (folder / "sub" / "private").mkdir(parents=True)
    (folder / ".env").write_text(CANARY)
    (folder / "sub" / "private" / "note").write_text(CANARY)
    return folder


NAMES = [(".env", "plain"), ("sub", "sub2")]


async def nothing_moved(road: Road, outer: Path, **parts: Any) -> None:
    """The closed names are where they were, and closed to files and commands."""
    assert (outer / ".env").read_text() == (outer / "sub" / "private" / "note").read_text() == CANARY
    assert sorted(path.name for path in outer.iterdir() if path.name not in ("inner", "meet")) == [".env", "sub"]
    assert await road.code("file.read", "plain", **parts) == "not_found"


@pytest.mark.parametrize(("names", "network"), [(NAMES[0], False), (NAMES[1], True)])
async def test_nested_scopes_do_not_open_each_others_names(
    tmp_path: Path, outer: Path, names: tuple[str, str], network: bool
) -> None:
    scopes = [
        folder_scope(outer, allowedCommands=["*"], deniedPaths=["sub/private"], network=network),
        folder_scope(outer / "inner", "inner", allowedCommands=["*"], network=network),
    ]
    async with service(tmp_path, scopes) as road:
        await meet(road, outer / "inner" / "meet", outer, names, giver={"scope": "app"}, taker={"scope": "inner"})
        await nothing_moved(road, outer)


@pytest.mark.parametrize("names", NAMES)
async def test_a_client_that_only_reads_opens_no_names_for_one_that_writes(
    tmp_path: Path, outer: Path, names: tuple[str, str]
) -> None:
    reads = Principal(
        id="oauth:reader", proof="oauth", session="s", connection="c", client="reader",
        grants=frozenset({"app:fs:read", "app:command:run", "app:process:manage"}),
    )  # fmt: skip
    scopes = [folder_scope(outer, allowedCommands=["*"], deniedPaths=["sub/private"])]
    async with service(tmp_path, scopes) as road:
        await meet(road, outer / "meet", outer, names, giver={"principal": LOCAL}, taker={"principal": reads})
        await nothing_moved(road, outer)


@pytest.mark.parametrize("names", NAMES)
async def test_a_command_on_a_view_opens_no_names_for_a_direct_one(
    tmp_path: Path, outer: Path, names: tuple[str, str]
) -> None:
    scopes = [folder_scope(outer, allowedCommands=["*"], deniedPaths=["sub/private"])]
    async with service(tmp_path, scopes) as road:
        await meet(road, outer / "meet", outer, names, giver={}, taker={"options": {"view": True}})
        await nothing_moved(road, outer)


LEAVE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
folder = os.open(sys.argv[1], os.O_RDONLY)
flags = 0x10000000 | 0x20000
match sys.argv[4]:
    case "unshare":
        failed = libc.unshare(flags)
    case "clone":
        failed = libc.syscall(56 if os.uname().machine == "x86_64" else 220, flags | 17, None, None, None, None)
    case "clone3":
        failed = libc.syscall(435, flags.to_bytes(8, sys.byteorder) + bytes(24) + (17).to_bytes(8, sys.byteorder) + bytes(24), 64)
if failed > 0:
    os.waitpid(failed, 0)
    sys.exit()
if failed < 0:
    print(os.strerror(ctypes.get_errno()))
    sys.exit()
os.makedirs("/tmp/new/old")
libc.mount(b"none", b"/", None, 0x40000 | 0x4000, None)
libc.mount(b"/tmp/new", b"/tmp/new", None, 4096, None)
os.chdir("/tmp/new")
libc.pivot_root(b".", b"old")
os.chdir("/")
print("left", libc.umount2(b"/old", 2))
os.rename(sys.argv[2], sys.argv[3], src_dir_fd=folder, dst_dir_fd=folder)
print("renamed")
"""


@pytest.mark.parametrize(("names", "call"), [(NAMES[0], "unshare"), (NAMES[1], "clone"), (NAMES[0], "clone3")])
async def test_no_command_leaves_the_mounts_that_close_its_names(
    tmp_path: Path, outer: Path, names: tuple[str, str], call: str
) -> None:
    """In a namespace of its own it could detach its whole root, and a name is held only in a namespace that has the mount."""
    scopes = [folder_scope(outer, allowedCommands=["*"], deniedPaths=["sub/private"])]
    async with service(tmp_path, scopes) as road:
        argv = ["python3", "-c", LEAVE, str(outer), *names, call]
        ran = await road.data("command.run", ".", input={"command": argv})
        assert ran["stdout"] == ("Function not implemented\n" if call == "clone3" else "Operation not permitted\n"), ran
        await nothing_moved(road, outer)


PAIRS = """
import socket, threading, subprocess
a, b = socket.socketpair()
a.send(b"x")
thread = threading.Thread(target=print, args=(b.recv(1),))
thread.start()
thread.join()
print(subprocess.run(["echo", "child"], capture_output=True).stdout)
try:
    socket.socket(socket.AF_UNIX).bind("/tmp/s")
    print("bound")
except PermissionError as error:
    print("refused")
"""


async def test_only_the_scope_with_more_to_hold_goes_without_sockets(tmp_path: Path, outer: Path) -> None:
    """The inner scope's folders are held by the outer one, too, so nothing that the inner one passes is opened there."""
    (tmp_path / "apart").mkdir()
    scopes = [
        folder_scope(outer, allowedCommands=["*"]),
        folder_scope(outer / "inner", "inner", allowedCommands=["*"]),
        folder_scope(tmp_path / "apart", "apart", allowedCommands=["*"]),
        {**folder_scope(tmp_path / "apart", "reads"), "capabilities": ["fs:read"]},
    ]
    async with service(tmp_path, scopes) as road:
        for scope, last in (("app", "refused"), ("inner", "bound"), ("apart", "bound")):
            ran = await road.data("command.run", ".", scope=scope, input={"command": ["python3", "-c", PAIRS]})
            assert ran["stdout"].split() == ["b'x'", "b'child\\n'", last]
