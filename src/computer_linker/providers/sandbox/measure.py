"""Measures what the boundary around a command enforces: a program inside tries each thing and reports what it could do.

`sandbox check` shows it, and a test compares SECURITY.md with it. The service itself needs less (see probe.py).
"""

import json
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from computer_linker.computer.facets.processes import Ended, Launch, ProcessLimits
from computer_linker.providers.processes.streams import collect
from computer_linker.providers.sandbox.boundary import Boundary, Confinement, Folder
from computer_linker.providers.sandbox.probe import interpreter, interpreter_places
from computer_linker.system import os

if TYPE_CHECKING:
    from computer_linker.providers.sandbox.sandbox import Sandbox

_TRY = """
import json, os, socket, sys
place = json.loads(sys.argv[1])
def could(act):
    try:
        act()
        return True
    except OSError:
        return False
def connect(family, address):
    with socket.socket(family) as s:
        s.settimeout(2)
        s.connect(address)
def write(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("x")
def read(path):
    with open(path) as file:
        if "canary" not in file.read():
            raise OSError("empty")
root, outside = place["root"], place["outside"]
unix = could(lambda: connect(socket.AF_UNIX, outside + "/socket"))
abstract = could(lambda: connect(socket.AF_UNIX, "\\0" + place["abstract"]))
print(json.dumps({
    "planted": could(lambda: write(outside + "/planted")),
    "filesOutside": could(lambda: read(outside + "/canary")),
    "modesOutside": could(lambda: os.chmod(outside + "/canary", 0o640)),
    "secretsInside": could(lambda: read(root + "/.env")),
    "protectedExisting": could(lambda: write(root + "/.vscode/tasks.json")),
    "protectedMissing": could(lambda: write(root + "/.codex/config.toml")),
    "network": could(lambda: connect(socket.AF_INET, ("127.0.0.1", place["port"]))),
    "pathSockets": unix,
    "abstractSockets": abstract,
    "otherProcesses": could(lambda: os.kill(place["service"], 0)),
}))
"""
_FORK = """
import os, signal
count = 0
try:
    while count < 300:
        if os.fork() == 0:
            signal.pause()
        count += 1
    print("open")
except OSError:
    print("held")
os.killpg(0, 9)
"""
_FILL = "data = [b'x' * 1000000 for _ in range(300)]; print('open')"
_LARGE = "import os; os.ftruncate(os.open('large', os.O_CREAT | os.O_WRONLY), 3 << 20); print('open')"
_ORPHAN = """
import os, sys
if os.fork() == 0:
    os.setsid()
    os.execve(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(60)", sys.argv[1]], {})
"""
_MEASURE = "sandbox-measure"
_WITH_NETWORK = ("pathSockets", "abstractSockets")
_SMALL = ProcessLimits(processes=64, memory_bytes=128 << 20, file_bytes=1 << 20)
_GONE_WITHIN_S = 10.0


async def measured(sandbox: "Sandbox", boundary: Boundary) -> dict[str, bool]:
    """Enforced restrictions by name: True where a program inside could not do it. The boundary must have been probed."""
    with _test_files() as place:
        found = await _tried(sandbox, boundary, place, network=False)
        _lay(place["inside"])
        with_network = await _tried(sandbox, boundary, place, network=True)
        found |= {f"{name}WithNetwork": with_network[name] for name in _WITH_NETWORK}
        run = _Inside(sandbox, boundary, place)
        found["processLimit"] = await run.output(_FORK) != b"open\n"
        found["memoryLimit"] = await run.output(_FILL) != b"open\n"
        found["fileSizeLimit"] = await run.output(_LARGE) != b"open\n"
        found["orphans"] = await _none_left(run)
    return found


async def _tried(sandbox: "Sandbox", boundary: Boundary, place: dict[str, Any], *, network: bool) -> dict[str, bool]:
    out = await _Inside(sandbox, boundary, place, network=network).output(_TRY, json.dumps(_arguments(place, boundary)))
    could = json.loads(out)
    # It may have written to a folder of the same name in the sandbox's own tmpfs.
    could["filesOutside"] |= could.pop("planted") and (place["outside"] / "planted").exists()
    # It may create the name; what counts is that the name is gone when the command has ended.
    could["protectedMissing"] &= (place["inside"] / ".codex").exists()
    return {name: not each for name, each in could.items()}


async def _none_left(run: "_Inside") -> bool:
    token = secrets.token_hex(8)
    await run.output(_ORPHAN, token)
    deadline = anyio.current_time() + _GONE_WITHIN_S
    while anyio.current_time() < deadline:
        if not _is_running(token):
            return True
        await anyio.sleep(0.02)
    return False


class _Inside:
    """Runs programs in one boundary."""

    def __init__(self, sandbox: "Sandbox", boundary: Boundary, place: dict[str, Any], *, network: bool = False) -> None:
        self._sandbox, self._boundary, self._place, self._network = sandbox, boundary, place, network

    async def output(self, program: str, *words: str) -> bytes:
        """What the program printed."""
        fd = os.open(self._place["inside"], os.O_PATH | os.O_DIRECTORY)
        root = _arguments(self._place, self._boundary)["root"]
        confinement = Confinement(
            writable=(Folder(fd, root),),
            programs=interpreter_places(),
            cwd=root,
            cwd_fd=fd,
            network=self._network,
        )
        argv = [interpreter(), "-I", "-S", "-c", program, *words]
        scanned = await self._sandbox.scan(confinement, self._boundary)
        environ = {"PATH": "/usr/bin:/bin"}
        plan, env = self._sandbox.wrap(argv, confinement, environ, boundary=self._boundary, scanned=scanned)
        if plan.planting is not None:
            plan.planting.command = _MEASURE
        try:
            launch = Launch(
                plan.argv, env, cwd_fd=plan.cwd_fd, fds=plan.fds, gate=plan.gate, wrapped=plan.wrapped,
                kernel=plan.kernel, staging=plan.staging, limits=_SMALL,
            )  # fmt: skip
            out, _ = await self._ran(launch)
            await plan.settle_planting()
        finally:
            plan.release()
            os.close(fd)
            shutil.rmtree(self._sandbox.state / "refused" / _MEASURE, ignore_errors=True)
        return out

    async def _ran(self, launch: Launch) -> tuple[bytes, Ended]:
        with anyio.fail_after(30):
            child = await self._sandbox.computer.processes.spawn(launch)
            child.go()
            out, _, ended = await collect(child, limit=20_000)
        return out, ended


def _arguments(place: dict[str, Any], boundary: Boundary) -> dict[str, Any]:
    root = "/run/sandbox-measure" if boundary.kind == "bubblewrap" else str(place["inside"])
    return {**place, "inside": "", "root": root, "outside": str(place["outside"])}


@contextmanager
def _test_files() -> Iterator[dict[str, Any]]:
    """A folder inside the boundary, and files and services outside that must be unreachable."""
    # A short path, because a socket's address is limited to about a hundred bytes.
    base = Path(tempfile.mkdtemp(prefix="computer-linker-measure-", dir=os.path.realpath("/tmp")))  # noqa: S108
    inside, outside = base / "inside", base / "outside"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        _lay(inside)
        outside.mkdir(mode=0o700)
        (outside / "canary").write_text("canary", encoding="utf-8")
        abstract = f"computer-linker-{secrets.token_hex(8)}"
        for address in (str(outside / "socket"), f"\0{abstract}"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield {
            "inside": inside, "outside": outside, "abstract": abstract, "port": server.getsockname()[1],
            "service": os.getpid(),
        }  # fmt: skip


def _lay(inside: Path) -> None:
    shutil.rmtree(inside, ignore_errors=True)
    (inside / ".vscode").mkdir(parents=True, mode=0o700)
    (inside / ".vscode" / "tasks.json").write_text("{}", encoding="utf-8")
    (inside / ".env").write_text("canary", encoding="utf-8")


def _is_running(token: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False
