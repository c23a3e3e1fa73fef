"""A throw-away Wayland desktop: sway without a screen or a graphics card."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from support.desktop import Desktop, start_bus, stopped_in_the_end, tied

_NOBODY = 65534
CONFIG = """output HEADLESS-1 resolution 1280x800 position 0 0
output HEADLESS-2 resolution 1600x1200 scale 2 position 1280 0
default_border none
default_floating_border none
for_window [title=".*"] floating enable
focus_follows_mouse no
xwayland disable
"""


@contextmanager
def sway_desktop(outputs: int = 1, *, with_bus: bool = False, config: str = CONFIG) -> Iterator[Desktop]:
    """sway on virtual outputs, by default the first 1280x800, the second 800x600 at twice the pixels."""
    with TemporaryDirectory(prefix="sway-", ignore_cleanup_errors=True) as place, stopped_in_the_end([]) as servers:
        folder = Path(place)
        env = _environment(folder)
        servers.append(_started(folder, env, outputs, config))
        env.update(_addresses(folder / "run", servers[0]))
        desktop = Desktop("", env, folder)
        if with_bus:
            servers.append(start_bus(desktop))
            env["NO_AT_BRIDGE"] = "0"
        with stopped_in_the_end(desktop.processes):
            yield desktop


def _environment(folder: Path) -> dict[str, str]:
    folder.chmod(0o755)
    for name in ("run", "home"):
        (folder / name).mkdir(mode=0o700)
    return {
        "HOME": str(folder / "home"),
        "LC_ALL": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "XDG_CURRENT_DESKTOP": "sway",
        "XDG_SESSION_TYPE": "wayland",
        "GDK_BACKEND": "wayland",
        "QT_QPA_PLATFORM": "wayland",
        "NO_AT_BRIDGE": "1",
        "LIBGL_ALWAYS_SOFTWARE": "1",
    }


def _started(folder: Path, env: dict[str, str], outputs: int, text: str) -> "subprocess.Popen[bytes]":
    config = folder / "sway.conf"
    config.write_text(text)
    headless = {
        "WLR_BACKENDS": "headless",
        "WLR_LIBINPUT_NO_DEVICES": "1",
        "WLR_RENDERER": "pixman",
        "WLR_HEADLESS_OUTPUTS": str(outputs),
        "LIBSEAT_BACKEND": "noop",
    }
    owner = None
    if os.geteuid() == 0:
        # sway refuses to run as root.
        for name in ("run", "home"):
            os.chown(folder / name, _NOBODY, _NOBODY)
        owner = _NOBODY
    with (folder / "sway.log").open("wb") as log:
        return subprocess.Popen(
            tied(["sway", "-c", str(config)]), env={**env, **headless}, cwd=folder, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            user=owner, group=owner, extra_groups=None if owner is None else [],
        )  # fmt: skip


def _addresses(run: Path, server: "subprocess.Popen[bytes]") -> dict[str, str]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and server.poll() is None:
        wayland = [path for path in run.glob("wayland-*") if path.suffix != ".lock"]
        sockets = list(run.glob("sway-ipc.*"))
        if wayland and sockets:
            return {"WAYLAND_DISPLAY": str(wayland[0]), "SWAYSOCK": str(sockets[0])}
        time.sleep(0.02)  # bounded above, and ends at once when sway has
    raise RuntimeError(f"sway did not start: {(run.parent / 'sway.log').read_text()[-1000:]}")


def tell(desktop: Desktop, command: str) -> None:
    """Have sway do something."""
    done = desktop.run("swaymsg", "-s", desktop.env["SWAYSOCK"], command)
    assert done.returncode == 0, done.stdout + done.stderr


def window_ids(desktop: Desktop, title: str) -> list[str]:
    """The ids of the windows with a title."""
    tree = json.loads(desktop.run("swaymsg", "-s", desktop.env["SWAYSOCK"], "-t", "get_tree").stdout)
    pending, found = [tree], []
    while pending:
        node = pending.pop()
        pending += node.get("nodes", []) + node.get("floating_nodes", [])
        if node.get("pid") and node.get("name") == title:
            found.append(str(node["id"]))
    return found
