"""Probes a boundary: a small program inside tries to cross it, and only what it could not do is claimed."""

import json
import shutil
import socket
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from computer_linker.computer.facets.processes import Launch, NamesChanged
from computer_linker.errors import LinkError
from computer_linker.providers.processes.streams import collect
from computer_linker.providers.sandbox.boundary import Boundary, Confinement, Folder
from computer_linker.system import os

if TYPE_CHECKING:
    from computer_linker.providers.sandbox.sandbox import Sandbox

_PROBE = "probe"
_TRY = """
import json, os, socket, sys
canary, outside, root, port, service = sys.argv[1:6]
def could(act):
    try:
        act()
        return True
    except OSError as error:
        return False
def connect():
    with socket.create_connection(("127.0.0.1", int(port)), 2):
        pass
def change():
    open(root + "/.codex/config.toml", "w").write("changed")
def plant():
    os.mkdir(root + "/.vscode")
print(json.dumps({
    "runs": True,
    "write_root": could(lambda: open(root + "/inside", "w").write("x")),
    "read_outside": could(lambda: open(canary).read()),
    "write_outside": could(lambda: open(outside, "w").write("x")),
    "network": could(connect),
    "signal": could(lambda: os.kill(int(service), 0)),
    "change": could(change),
    "plant": could(plant),
}))
"""


_NAMES_HELD = {
    "bubblewrap": "protected names and secrets that exist are closed in every folder of the roots, and a protected name that a "
    "command makes in one of them is taken away again",
    "landlock": "protected names and secrets inside the roots stay open; a protected name that a command makes is taken away "
    "again",
    "seatbelt": "protected names are closed in every folder of the roots",
    "none": "",
}


async def crossed(sandbox: "Sandbox", claimed: Boundary) -> Boundary:
    """The boundary as probed, or none with the reason."""
    place = _set_out(sandbox.state)
    try:
        return await _crossed(sandbox, claimed, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def _crossed(sandbox: "Sandbox", claimed: Boundary, place: Path) -> Boundary:
    inside, outside = place / "inside", place / "outside"
    try:
        attempt = await _attempt(sandbox, claimed, inside, place / "canary", outside)
    except LinkError as error:
        return Boundary("none", detail=error.message)
    except NamesChanged:
        return Boundary("none", detail="the probe's folder changed while it was tried")
    except TimeoutError:
        return Boundary("none", detail="the probe did not answer in time")
    if not attempt.get("runs") or not attempt.get("write_root"):
        return Boundary("none", detail=str(attempt.get("error") or "a command cannot run inside it")[:300])
    return replace(
        claimed,
        files=not attempt["read_outside"] and not attempt["write_outside"] and not outside.exists(),
        network=not attempt["network"],
        processes=not attempt["signal"],
        protected=_is_protected(inside),
        detail=f"a program inside tried to read, write, connect, signal and plant; {_NAMES_HELD[claimed.kind]}",
    )


def _set_out(state: Path) -> Path:
    """Create the files of one probe: a writable folder, and a file that must not be readable."""
    place = Path(tempfile.mkdtemp(prefix="sandbox-probe-", dir=os.path.realpath(state)))
    (place / "inside" / ".codex").mkdir(parents=True, mode=0o700)
    (place / "inside" / ".codex" / "config.toml").write_text("kept", encoding="utf-8")
    (place / "canary").write_text("canary", encoding="utf-8")
    return place


def interpreter_places() -> tuple[str, ...]:
    """Folders that the running interpreter needs inside a boundary."""
    return tuple(dict.fromkeys(os.path.realpath(place) for place in (sys.prefix, sys.base_prefix)))


def interpreter() -> str:
    """This interpreter's path without links in its folder, as it is mounted inside."""
    folder, name = os.path.split(sys.executable)
    return f"{os.path.realpath(folder)}/{name}"


def _is_protected(inside: Path) -> bool:
    """True when a protected name was not changed, and a planted one was removed."""
    text = (inside / ".codex" / "config.toml").read_text(encoding="utf-8")
    return text == "kept" and not (inside / ".vscode").exists()


async def _attempt(
    sandbox: "Sandbox", claimed: Boundary, inside: Path, canary: Path, outside: Path
) -> dict[str, object]:
    fd = os.open(inside, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            script = [str(part) for part in (canary, outside, "/run/sandbox-probe", port, os.getpid())]
            if claimed.kind != "bubblewrap":
                script[2] = str(inside)
            argv = [interpreter(), "-I", "-S", "-c", _TRY, *script]
            confinement = Confinement(
                writable=(Folder(fd, script[2]),),
                programs=interpreter_places(),
                cwd=script[2],
                cwd_fd=fd,
            )
            scanned = await sandbox.scan(confinement, claimed)
            environ = {"PATH": "/usr/bin:/bin"}
            plan, env = sandbox.wrap(argv, confinement, environ, boundary=claimed, scanned=scanned)
            if plan.planting is not None:
                plan.planting.command = _PROBE
            try:
                launch = Launch(
                    plan.argv, env, cwd_fd=plan.cwd_fd, fds=plan.fds, gate=plan.gate, wrapped=plan.wrapped,
                    kernel=plan.kernel, staging=plan.staging,
                )  # fmt: skip
                with anyio.fail_after(20):
                    child = await sandbox.computer.processes.spawn(launch)
                    child.go()
                    out, err, _ = await collect(child, limit=20_000)
                    await plan.settle_planting()
            finally:
                plan.release()
    finally:
        os.close(fd)
        shutil.rmtree(sandbox.state / "refused" / _PROBE, ignore_errors=True)
    try:
        answer = json.loads(out)
    except ValueError:
        return {"error": err.decode("utf-8", "replace").strip() or "no answer"}
    return dict(answer)
