"""Install, inspect and remove the service. Each step is idempotent; the state folder is never touched."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from computer_linker import home as places
from computer_linker.client.socket_client import running_url
from computer_linker.config.private import make_folder
from computer_linker.config.store import write_whole
from computer_linker.model.base import Model
from computer_linker.service.install.launchd import Launchd
from computer_linker.service.install.plan import Plan, ServiceManager, ServiceManagerFailed
from computer_linker.service.install.systemd import Systemd
from computer_linker.service.install.windows import WindowsTask
from computer_linker.system import NAME, os

_MANAGERS: dict[str, Callable[[], ServiceManager]] = {"linux": Systemd, "darwin": Launchd, "windows": WindowsTask}
_START_S = 45.0
_POLL_S = 0.1


class Installed(Model):
    """What `service install` wrote, and where the service answers."""

    file: str
    change: Literal["written", "unchanged", "rewritten"]
    content: str
    local_url: str


class Uninstalled(Model):
    """What `service uninstall` removed."""

    file: str
    removed: bool


class ServiceState(Model):
    """What is installed, whether it is current, and what the service manager reports."""

    state: str
    local_url: str | None
    manager: str
    is_proven: bool
    file: str
    installed: bool
    up_to_date: bool
    enabled: bool | None = None
    pid: int | None = None
    restarts: int | None = None
    detail: str | None = None
    problem: str | None = None


def this_manager() -> ServiceManager:
    """The service manager of this system."""
    return _MANAGERS[NAME]()


def install(manager: ServiceManager, plan: Plan) -> Installed:
    """Write the file, have the manager restart the service, and wait until it answers.

    Raises ServiceManagerFailed; when the manager does not answer or another service runs, nothing was written.
    """
    manager.check_usable()
    _check_not_running(manager, plan.home)
    content = manager.rendered(plan)
    file = manager.file()
    before = file.read_bytes() if file.exists() else None
    if before != content:
        make_folder(file.parent)
        write_whole(file.parent, file.name, content)
    manager.start()
    changed: Literal["written", "unchanged", "rewritten"] = "unchanged" if before == content else "rewritten"
    return Installed(
        file=os.fspath(file),
        change="written" if before is None else changed,
        content=as_text(content),
        local_url=_until_it_answers(manager, plan.home),
    )


def as_text(content: bytes) -> str:
    """The file's text for people; Windows needs the file in another encoding."""
    return content.decode("utf-16" if content.startswith(b"\xff\xfe") else "utf-8")


def status(manager: ServiceManager, plan: Plan) -> ServiceState:
    """Return what is installed, whether it is current, and its state."""
    file = manager.file()
    content = file.read_bytes() if file.exists() else None
    found = ServiceState(
        state="unknown",
        local_url=running_url(plan.home),
        manager=manager.name,
        is_proven=manager.is_proven,
        file=os.fspath(file),
        installed=content is not None,
        up_to_date=content in (manager.rendered(plan), manager.rendered(_other(plan))),
    )
    try:
        reported = manager.status()
    except ServiceManagerFailed as error:
        return found.model_copy(update={"problem": error.message})
    return found.model_copy(
        update={
            "state": reported.state if content is not None else "not installed",
            "enabled": reported.is_enabled,
            "pid": reported.pid,
            "restarts": reported.restarts,
            "detail": reported.detail,
        }
    )


def uninstall(manager: ServiceManager) -> Uninstalled:
    """Stop it and remove the file; config, history, sessions and tunnels' settings stay."""
    file = manager.file()
    existed = file.exists()
    if existed:
        manager.remove()
        file.unlink(missing_ok=True)
        manager.forget()
    return Uninstalled(file=os.fspath(file), removed=existed)


def _other(plan: Plan) -> Plan:
    return Plan(plan.home, plan.argv, plan.environment, not plan.with_desktop)


def _check_not_running(manager: ServiceManager, home: Path) -> None:
    """Refuse when a service started in a terminal uses the folder; the manager's own is replaced."""
    url = running_url(home)
    if url is None or manager.status().pid is not None:
        return
    raise ServiceManagerFailed(
        f"a service already runs for this state folder at {url}",
        "stop it first: computer-linker stop, then install again",
    )


def _until_it_answers(manager: ServiceManager, home: Path) -> str:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        url = running_url(home)
        if url is not None:
            return url
        if manager.status().state == "failed":
            break
        time.sleep(_POLL_S)
    raise ServiceManagerFailed("the service is installed but does not answer", "computer-linker service logs says why")


# Reads the service's log: the last lines, then new ones.

_LOG_POLL_S = 0.3
_MAX_LINE = 8192


class Log:
    """Reads on from where it stopped; a new file in the place of the old one is read from its start."""

    def __init__(self, home: Path) -> None:
        self._path = home / places.LOG_NAME
        self._earlier = home / f"{places.LOG_NAME}.1"
        self._at = 0
        self._which: int | None = None
        self._rest = b""

    def last(self, count: int) -> list[str]:
        """The newest lines, the oldest of them first."""
        kept: deque[str] = deque(maxlen=count)
        if self._earlier.exists():
            kept.extend(_text(line) for line in self._earlier.read_bytes().splitlines())
        kept.extend(self.more())
        return list(kept)

    def more(self) -> list[str]:
        """Return the complete lines added since."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return []
        with file:
            found = os.fstat(file.fileno())
            if found.st_ino != self._which or found.st_size < self._at:
                self._at, self._which, self._rest = 0, found.st_ino, b""
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [_text(line) for line in whole]

    def follow(self) -> Iterator[str]:
        """Yield new lines until the caller stops."""
        while True:
            yield from self.more()
            time.sleep(_LOG_POLL_S)


def _text(line: bytes) -> str:
    return line[:_MAX_LINE].decode("utf-8", "replace")
