"""A throw-away X11 desktop: Xvfb, openbox, a private session bus with accessibility on, and applications on it."""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NEEDS = {"Xvfb": "xvfb", "openbox": "openbox", "dbus-daemon": "dbus", "gdbus": "libglib2.0-bin"}
"""Programs of a session and the Debian packages that bring them."""


def missing(*programs: str) -> list[str]:
    """The programs that are not installed, of those given or of a plain session."""
    return [name for name in (programs or tuple(NEEDS)) if shutil.which(name) is None]


@dataclass
class Desktop:
    """One running session. `env` is what an application on it needs."""

    display: str
    env: dict[str, str]
    folder: Path
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def launch(self, *argv: str, **extra: Any) -> "subprocess.Popen[bytes]":
        """Start an application on this desktop; it ends with the session."""
        env = {**self.env, **extra.pop("env", {})}
        process = subprocess.Popen(argv, env=env, start_new_session=True, **_quiet(extra))
        self.processes.append(process)
        return process

    def run(self, *argv: str, timeout: float = 20, **extra: Any) -> "subprocess.CompletedProcess[bytes]":
        """Run a program on this desktop to its end."""
        return subprocess.run(argv, env=self.env, capture_output=True, timeout=timeout, check=False, **extra)

    def end(self, process: "subprocess.Popen[bytes] | None") -> None:
        """Stop one application and all it started."""
        assert process is not None, "only what was launched here can be stopped here"
        if process in self.processes:
            self.processes.remove(process)
        stop(process)


@contextmanager
def x11_desktop(
    folder: Path, *, size: str = "1280x800x24", with_bus: bool = True, with_wm: bool = True, dpi: int = 96
) -> Iterator[Desktop]:
    """A session of its own on a free display number; everything in it is stopped at the end."""
    with stopped_in_the_end([]) as servers:
        server, display = _start_xvfb(size, dpi)
        servers.append(server)
        desktop = Desktop(display, environment(display, folder), folder)
        if with_bus:
            servers.append(start_bus(desktop))
        if with_wm:
            servers.append(start_openbox(desktop))
        with stopped_in_the_end(desktop.processes):
            yield desktop


@contextmanager
def stopped_in_the_end(processes: list["subprocess.Popen[bytes]"]) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Whatever is in the list by then is stopped, the last first."""
    try:
        yield processes
    finally:
        for process in reversed(processes):
            stop(process)


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End a process group gently, then firmly."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, signal_number)
        except ProcessLookupError:
            break
        try:
            process.wait(3)
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait(5)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def tied(argv: list[str]) -> list[str]:
    """The same program, which the kernel ends when this one is killed before it could."""
    return ["setpriv", "--pdeathsig", "KILL", *argv] if shutil.which("setpriv") else argv


def _quiet(extra: dict[str, Any]) -> dict[str, Any]:
    return {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **extra}


def environment(display: str, folder: Path) -> dict[str, str]:
    run, home = folder / "run", folder / "home"
    run.mkdir(mode=0o700, parents=True)
    home.mkdir()
    return {
        "DISPLAY": display,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "XDG_RUNTIME_DIR": str(run),
        # None of the portal backends installed here: they belong to other desktops, and starting them takes seconds.
        "XDG_DESKTOP_PORTAL_DIR": str(home),
        "XDG_SESSION_TYPE": "x11",
        "NO_AT_BRIDGE": "0",
        "LIBGL_ALWAYS_SOFTWARE": "1",
    }


def _start_xvfb(size: str, dpi: int) -> tuple["subprocess.Popen[bytes]", str]:
    reader, writer = os.pipe()
    argv = ["Xvfb", "-displayfd", str(writer), "-screen", "0", size, "-dpi", str(dpi), "-nolisten", "tcp", "-noreset"]
    server = subprocess.Popen(tied(argv), pass_fds=[writer], start_new_session=True, **_quiet({}))
    os.close(writer)
    number = line_of(reader, server).strip()
    os.close(reader)
    return server, f":{number}"


def start_bus(desktop: Desktop) -> "subprocess.Popen[bytes]":
    """Give the desktop a session bus of its own, with accessibility on."""
    bus, desktop.env["DBUS_SESSION_BUS_ADDRESS"] = _start_bus(desktop.env)
    # Applications look at this once, when they start.
    desktop.run(
        "gdbus", "call", "--session", "-d", "org.a11y.Bus", "-o", "/org/a11y/bus",
        "-m", "org.freedesktop.DBus.Properties.Set", "org.a11y.Status", "IsEnabled", "<true>",
    )  # fmt: skip
    return bus


def _start_bus(env: dict[str, str]) -> tuple["subprocess.Popen[bytes]", str]:
    reader, writer = os.pipe()
    argv = ["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--print-address={writer}"]
    bus = subprocess.Popen(tied(argv), env=env, pass_fds=[writer], start_new_session=True, **_quiet({}))
    os.close(writer)
    address = line_of(reader, bus).strip()
    os.close(reader)
    return bus, address


def start_openbox(desktop: Desktop) -> "subprocess.Popen[bytes]":
    # In the C locale openbox spends 8 ms a keymap change instead of 447.
    manager = subprocess.Popen(
        tied(["openbox", "--sm-disable"]), env={**desktop.env, "LC_ALL": "C"}, start_new_session=True, **_quiet({})
    )
    _until_managed(desktop, manager)
    return manager


def _until_managed(desktop: Desktop, manager: "subprocess.Popen[bytes]") -> None:
    from Xlib import X
    from Xlib.display import Display

    connection = Display(desktop.display)
    try:
        root = connection.screen().root
        root.change_attributes(event_mask=X.PropertyChangeMask)
        check = connection.intern_atom("_NET_SUPPORTING_WM_CHECK")
        deadline = time.monotonic() + 20
        while root.get_full_property(check, X.AnyPropertyType) is None:
            if manager.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("openbox did not start")
            select.select([connection.fileno()], [], [], 0.1)
            while connection.pending_events():
                connection.next_event()
    finally:
        connection.close()


def line_of(fd: int, process: "subprocess.Popen[bytes]") -> str:
    """One line from a pipe, within 20 seconds."""
    text, deadline = b"", time.monotonic() + 20
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(fd, 4096) if ready else b""
        if not chunk:
            raise RuntimeError(f"{process.args!r} did not start")
        text += chunk
    return text.decode()
