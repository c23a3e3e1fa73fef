"""A real `systemd --user` manager for one test: its own /run, its own control group, ended with all it started."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from support.service import is_alive, wait_for

_MANAGER = "/usr/lib/systemd/systemd"
# systemd asks whether the machine was booted with it; in a mount namespace of our own we may say so.
_START = f"""
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
echo $$ > "$1/cgroup.procs"
exec {_MANAGER} --user --log-target=null
"""  # fmt: skip


def why_not() -> str | None:
    """What is missing for such a manager; None when nothing is."""
    for program in ("systemctl", "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not Path(_MANAGER).exists():
        return "systemd is not installed"
    if os.geteuid() != 0:
        return "only root can make the mount namespace and the control group for a manager of its own"
    if _group_folder() is None:
        return "no control group can be made here"
    return None


@dataclass
class Manager:
    """Where the manager is reached, and where it looks for units."""

    folder: Path
    process: "subprocess.Popen[bytes]"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach this manager and no other."""
        kept = {name: value for name, value in os.environ.items() if name != "DBUS_SESSION_BUS_ADDRESS"}
        home = self.folder / "home"
        named = {"HOME": home, "XDG_RUNTIME_DIR": self.folder / "run", "XDG_CONFIG_HOME": home / ".config"}
        return {**kept, **{name: str(path) for name, path in named.items()}}

    @property
    def unit(self) -> Path:
        return self.folder / "home" / ".config" / "systemd" / "user" / "computer-linker.service"

    def ask(self, *words: str) -> str:
        done = subprocess.run(
            ["systemctl", "--user", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return done.stdout

    def main_pid(self) -> int:
        return int(self.ask("show", "computer-linker.service", "--property=MainPID", "--value") or 0)


@contextlib.contextmanager
def user_manager() -> Iterator[Manager]:
    """A running manager. Sockets have short names, so the folder is a short one."""
    folder = Path(tempfile.mkdtemp(prefix="clsd-"))
    above = _group_folder()
    assert above is not None
    group = above / folder.name
    group.mkdir()
    for name in ("run", "home"):
        (folder / name).mkdir(mode=0o700)
    manager = Manager(folder, subprocess.Popen(["true"]))
    manager.process.wait()
    manager.process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", _START, "sh", str(group)], env=manager.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(lambda: (folder / "run" / "systemd" / "private").exists(), seconds=30)
        wait_for(
            lambda: manager.ask("show", "--property=SystemState", "--value").strip() in ("running", "degraded"),
            seconds=30,
            step_s=0.1,
        )
        yield manager
    finally:
        manager.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            manager.process.wait(40)
        _end(group)
        manager.process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def _group_folder() -> Path | None:
    # Where systemd itself looks, first: a manager at the top would take everyone's processes for its own.
    for folder in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/systemd")):
        if (folder / "cgroup.procs").exists() and os.access(folder, os.W_OK):
            return folder
    return None


def _end(group: Path) -> None:
    """End what is left in the manager's own control group, and remove the group."""
    tops = [top for top in (group, *Path("/sys/fs/cgroup").glob(f"*/{group.name}")) if top.exists()]
    inner = {path for top in tops for path in top.rglob("*") if path.is_dir()}
    folders = [*sorted(inner, reverse=True), *tops]
    for folder in folders:
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            wait_for(partial(_has_ended, int(pid)))
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _has_ended(pid: int) -> bool:
    return not is_alive(pid)
