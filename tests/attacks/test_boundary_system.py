"""What a command shares with other programs of the same user through the kernel: keys, terminals, shared memory, limits."""

import ctypes
import json
import os
import platform
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.sandbox.boundary import Confinement, Kind
from computer_linker.providers.sandbox.new_root import new_root
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="calls by their numbers"),
]
libc = ctypes.CDLL(None, use_errno=True)
KEYCTL, ADD_KEY = 250, 248
JOIN, SEARCH, READ = 1, 10, 11
CANARY = "CANARY-51c7"
TRY = """
import ctypes, errno, fcntl, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
def key(keyring, name):
    found = ctypes.create_string_buffer(100)
    number = libc.syscall(250, 10, keyring, b"user", name.encode(), 0)
    libc.syscall(250, 11, number, found, 100)
    return found.value.decode()
def shared(number):
    at = libc.shmat(number, None, 0o10000)
    return "" if at in (None, 2**64 - 1) else ctypes.string_at(at, 11).decode()
def limited(pid):
    return libc.prlimit(pid, 0, (ctypes.c_ulong * 2)(1, 1), None)
def opened(path, flags=os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK):
    return os.close(os.open(path, flags))
def read(path):
    with open(path) as file:
        return file.read()
def queue(name):
    libc.syscall(241, name.encode())
    return libc.syscall(240, name.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
def asked(request):
    return fcntl.ioctl(os.open(".", os.O_RDONLY), request, bytearray(4096))
def family(number):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(number, kind, 0).close()
            return
        except OSError as error:
            last = error
            if error.errno != errno.EPERM:
                return errno.errorcode[error.errno]
    raise last
def tried(act, *given):
    try:
        return act(*given)
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps([tried(globals()[name], *given) for name, *given in json.loads(sys.argv[1])]))
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=[False, True], ids=["cut", "network"])
def network(request: pytest.FixtureRequest) -> bool:
    return request.param  # type: ignore[no-any-return]


async def tried(tmp_path: Path, kind: Kind, network: bool, *acts: tuple[Any, ...]) -> list[Any]:
    """What each act gave to a command."""
    (tmp_path / "root").mkdir()
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="required", network=network)
    async with Road.open(tmp_path, [scope]) as road:
        sandbox = Sandbox(road.app.computer, road.home, kinds=(kind,))
        found = await sandbox.probe()
        if found.kind != kind:
            pytest.skip(f"{kind} cannot be had here: {found.detail}")
        road.app.services.provide(Sandbox, sandbox)
        told = await road.data("command.run", ".", input={"command": ["/usr/bin/python3", "-c", TRY, json.dumps(acts)]})
        await sandbox.aclose()
    assert told["exitCode"] == 0, told
    given: list[Any] = json.loads(told["stdout"])
    return given


async def test_keys_of_the_user_are_not_in_reach(tmp_path: Path, kind: Kind, network: bool) -> None:
    if libc.syscall(KEYCTL, JOIN, None) < 0:
        pytest.skip("there are no keyrings here")
    names = [f"{CANARY}-{secrets.token_hex(4)}" for _ in range(2)]
    for keyring, name in zip((-3, -4), names, strict=True):
        assert libc.syscall(ADD_KEY, b"user", name.encode(), CANARY.encode(), len(CANARY), keyring) > 0
    given = await tried(
        tmp_path, kind, network, *(("key", ring, name) for ring, name in zip((-3, -4), names, strict=True))
    )
    assert given == ["", ""]


@pytest.fixture
def terminal() -> Iterator[str]:
    """The terminal of another program."""
    ours, theirs = os.openpty()
    yield os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


async def test_other_terminals_and_devices_cannot_be_opened(
    tmp_path: Path, kind: Kind, network: bool, terminal: str
) -> None:
    devices = ["/dev/tty0", "/dev/tty1", "/dev/kvm", "/dev/fuse", "/dev/loop0", "/dev/input/event0", "/dev/video0", "/dev/uinput"]  # fmt: skip
    given = await tried(tmp_path, kind, network, *(("opened", path) for path in (terminal, *devices)))
    assert set(given) <= {"EACCES", "ENOENT", "EPERM"}, given
    usual = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/full")
    (tmp_path / "again").mkdir()
    assert await tried(tmp_path / "again", kind, network, *(("opened", path, 2) for path in usual)) == [None] * 4


async def test_shared_memory_of_other_programs_is_not_in_reach(tmp_path: Path, kind: Kind, network: bool) -> None:
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(0, 4096, 0o1600)
    if segment < 0:
        pytest.skip("there is no shared memory here")
    at = libc.shmat(segment, None, 0)
    try:
        ctypes.memmove(at, CANARY.encode(), len(CANARY))
        with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="canary-") as file:
            given = await tried(tmp_path, kind, network, ("shared", segment), ("opened", file.name))
        assert given[0] == "" and given[1] in ("EACCES", "ENOENT"), given
    finally:
        libc.shmctl(segment, 0, None)
        libc.shmdt(ctypes.c_void_p(at))


async def test_message_queues_of_other_programs_are_not_in_reach(tmp_path: Path, kind: Kind, network: bool) -> None:
    """POSIX message queues: a command neither removes one of the user nor uses up how many the user may have."""
    ours, theirs = (f"{CANARY}-{os.getpid()}-{number}".encode() for number in range(2))
    made = libc.syscall(240, ours, os.O_CREAT | os.O_RDWR, 0o600, None)
    if made < 0:
        pytest.skip("there are no message queues here")
    try:
        await tried(tmp_path, kind, network, ("queue", ours.decode()), ("queue", theirs.decode()))
        found = libc.syscall(240, ours, os.O_RDWR, 0, None)
        assert found >= 0, "the command removed a queue of another program"
        os.close(found)
        assert libc.syscall(241, theirs) < 0, "a queue of the command is left"
    finally:
        os.close(made)
        libc.syscall(241, ours)


async def test_without_network_no_socket_reaches_past_the_namespaces(tmp_path: Path, kind: Kind) -> None:
    """vsock and Bluetooth know no network namespace, and some families carry TCP that Landlock does not see."""
    others = [family for family in range(46) if family not in (1, 2, 10, 16, 17, 38)]
    given = await tried(tmp_path, kind, False, *(("family", family) for family in (*others, 2)))
    assert set(given[:-1]) == {"EPERM"}
    assert given[-1] == (None if kind == "bubblewrap" else "EPERM")


async def test_no_snapshot_shows_what_is_covered(tmp_path: Path) -> None:
    """On btrfs the owner of a subvolume may take one; on other disks the request is unknown."""
    given = await tried(
        tmp_path, "bubblewrap", False, *(("asked", request) for request in (0x50009401, 0x50009417, 0x9402))
    )
    assert given == ["EPERM", "EPERM", "ENOTTY"]


async def test_settings_that_not_everyone_may_read_are_hidden(tmp_path: Path, kind: Kind) -> None:
    mine = [path for path in Path("/etc").rglob("*") if _is_secret(path)]
    if not mine:
        pytest.skip("this user reads nothing in /etc that others do not")
    given = await tried(tmp_path, kind, False, *(("read", str(path)) for path in mine))
    assert set(given) <= {"", "EACCES", "ENOENT", "EPERM"}, list(zip(mine, given, strict=True))


def _is_secret(path: Path) -> bool:
    return path.is_file() and not path.stat().st_mode & 0o4 and os.access(path, os.R_OK) and path.stat().st_size > 0


def test_a_socket_of_the_resolver_is_not_shown() -> None:
    shown = {mount.at for _, _, mount in new_root(Confinement(), {}).mounts}
    sockets = [place for place in ("/run", "/run/systemd", "/run/systemd/resolve") if place in shown]
    assert sockets == [] and "/run/systemd/resolve/resolv.conf" in shown


async def test_limits_of_other_processes_stay(tmp_path: Path, kind: Kind, network: bool) -> None:
    """A processor time of a second would end any of them."""
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            before = resource.prlimit(other.pid, resource.RLIMIT_CPU)
            given = await tried(tmp_path, kind, network, ("limited", other.pid), ("limited", 0))
            assert resource.prlimit(other.pid, resource.RLIMIT_CPU) == before
            assert given == [-1, 0]
        finally:
            other.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could read or write them")
async def test_what_only_root_may_do_a_command_of_root_may_not(tmp_path: Path, kind: Kind, network: bool) -> None:
    write = os.O_WRONLY
    settings = ["kernel/core_pattern", "kernel/modprobe", "vm/drop_caches", "kernel/sysrq"]
    acts = [*(("opened", f"/proc/sys/{name}", write) for name in settings), *(("opened", f"/proc/{name}", write) for name in ("sysrq-trigger", "mtrr"))]  # fmt: skip
    given = await tried(tmp_path, kind, network, *acts)
    assert set(given) <= {"EACCES", "EROFS", "ENOENT", "EPERM"}, given
    (tmp_path / "again").mkdir()
    files = [
        ("read", "/etc/shadow"),
        ("read", "/etc/gshadow"),
        ("read", "/etc/passwd"),
        ("read", "/etc/ssl/openssl.cnf"),
    ]
    shadow, gshadow, passwd, ssl = await tried(tmp_path / "again", kind, network, *files)
    assert shadow in ("", "EACCES", "ENOENT") and gshadow in ("", "EACCES", "ENOENT")
    assert "root" in passwd and ssl not in ("", "EACCES")


async def test_a_variable_of_the_loader_reaches_the_program_and_not_bubblewrap(tmp_path: Path) -> None:
    """bubblewrap starts where the disk is still in sight; a library of the scope's folder must not be loaded there."""
    compiler = shutil.which("cc")
    if compiler is None or shutil.which("bwrap") is None:
        pytest.skip("a compiler or bubblewrap is missing")
    root = tmp_path / "root"
    root.mkdir()
    library = root / "evil.so"
    code = '#include <stdio.h>\n__attribute__((constructor)) void f(void) { fprintf(stderr, "%s\\n", "LOADED"); }'
    subprocess.run([compiler, "-shared", "-fPIC", "-xc", "-", "-o", str(library)], input=code, text=True, check=True)
    scope = folder_scope(root, allowedCommands=["*"], sandbox="required", environment=["LD_PRELOAD", "LD_LIBRARY_PATH"])
    async with Road.open(tmp_path, [scope]) as road:
        for place, loaded in ((f"/staged{library}", 0), (str(library), 1)):
            given = {"command": ["/bin/echo", "hi"], "env": {"LD_PRELOAD": place, "LD_LIBRARY_PATH": f"/staged{root}"}}
            told = await road.data("command.run", ".", input=given)
            assert told["exitCode"] == 0 and told["stdout"] == "hi\n"
            assert told["stderr"].count("LOADED") == loaded, told["stderr"]
