"""Other compositors without a screen: GNOME's mutter and KDE's kwin, for what they let a program do."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from support.desktop import Desktop, start_bus, stopped_in_the_end, tied

_STARTED_S = 30.0
_COMMANDS = {
    "mutter": ["mutter", "--headless", "--wayland", "--no-x11", "--virtual-monitor", "1280x800"],
    "kwin_wayland": ["kwin_wayland", "--virtual", "--width", "1280", "--height", "800", "--no-lockscreen"],
}
_MORE = {"mutter": {}, "kwin_wayland": {"KWIN_COMPOSE": "O2", "QT_QPA_PLATFORM": "offscreen"}}
_DESKTOPS = {"mutter": "GNOME", "kwin_wayland": "KDE"}


@contextmanager
def compositor(name: str, *, portals: bool = False, settings: str = "") -> Iterator[Desktop]:
    """A session of its own with one virtual monitor of 1280x800; `portals` lets it have the backends installed here."""
    with TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as place, stopped_in_the_end([]) as servers:
        folder = Path(place)
        desktop = Desktop("", _environment(folder, name), folder)
        if portals:
            # A KDE session lets its portal in by a file of the system that only counts for a program of the system.
            desktop.env["KWIN_WAYLAND_NO_PERMISSION_CHECKS"] = "1"
        else:
            desktop.env["XDG_DESKTOP_PORTAL_DIR"] = str(folder / "no-portals")
        if settings:
            _keep_settings(desktop, settings)
        servers.append(start_bus(desktop))
        servers.append(_started(name, desktop))
        desktop.env["WAYLAND_DISPLAY"] = str(_socket(folder / "run", servers[-1], folder / "log"))
        with stopped_in_the_end(desktop.processes):
            yield desktop


async def is_on_the_bus(desktop: Desktop, name: str) -> None:
    """Wait until a program has this name on the session bus."""
    waited = ["gdbus", "wait", "--session", "--timeout", "20", name]
    assert (await anyio.run_process(waited, env=desktop.env, check=False)).returncode == 0, name


def _environment(folder: Path, name: str) -> dict[str, str]:
    for part in ("run", "home", "no-portals"):
        (folder / part).mkdir(mode=0o700)
    return {
        "HOME": str(folder / "home"),
        "LC_ALL": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "XDG_CURRENT_DESKTOP": _DESKTOPS[name],
        "XDG_SESSION_TYPE": "wayland",
        "GDK_BACKEND": "wayland",
        "NO_AT_BRIDGE": "0",
        "LIBGL_ALWAYS_SOFTWARE": "1",
        "GSETTINGS_BACKEND": "memory",
    }


def _keep_settings(desktop: Desktop, settings: str) -> None:
    folder = Path(desktop.env["HOME"]) / ".config" / "glib-2.0" / "settings"
    folder.mkdir(parents=True)
    (folder / "keyfile").write_text(settings)
    desktop.env["GSETTINGS_BACKEND"] = "keyfile"


def _started(name: str, desktop: Desktop) -> "subprocess.Popen[bytes]":
    program, *words = _COMMANDS[name]
    found = shutil.which(program)
    assert found is not None
    if name == "kwin_wayland":
        # Its file capability keeps it from reading the environment of a test; a copy has none.
        copy = desktop.folder / program
        shutil.copyfile(found, copy)
        copy.chmod(0o755)
        found = str(copy)
    with (desktop.folder / "log").open("wb") as log:
        return subprocess.Popen(
            tied([found, *words]), env={**desktop.env, **_MORE[name]}, cwd=desktop.folder, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip


def _socket(run: Path, server: "subprocess.Popen[bytes]", log: Path) -> Path:
    deadline = time.monotonic() + _STARTED_S
    while time.monotonic() < deadline and server.poll() is None:
        found = [path for path in run.glob("wayland-*") if path.suffix != ".lock"]
        if found:
            return found[0]
        time.sleep(0.02)  # bounded above, and ends at once when the compositor has
    raise RuntimeError(f"the compositor did not start: {log.read_text(errors='replace')[-800:]}")
