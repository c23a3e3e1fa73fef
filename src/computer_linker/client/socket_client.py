"""The control client of the command line: one request and one reply over the private socket."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from computer_linker import home as places
from computer_linker.system import Detached, make_private_folders

_START_DEADLINE_S = 30.0
_LOCKED_PAUSE_S = 0.1
_HELLO_S = 10.0
Report = Callable[[str, float | None, float | None], None]


class ServiceUnreachable(Exception):
    """No service answers and none could be started; the message has the reason."""


class ConnectionLost(ServiceUnreachable):
    """The service got the request and ended before it answered: it may have run, so it is not sent again."""

    def __init__(self) -> None:
        super().__init__("the connection was lost; what came of it is unknown: computer-linker history")


def call_service(home: Path, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a tool in the service of this state folder, starting an on-demand service when none runs."""
    return ask_or_start(home, {"tool": tool, "arguments": arguments})


def ask_or_start(
    home: Path, request: dict[str, Any], report: Report | None = None, *, is_question: bool = False
) -> dict[str, Any]:
    """The service's answer, from an on-demand service when none runs yet."""
    answer = ask_service(home, request, report=report, is_question=is_question)
    if answer is None:
        start_service(home)
        answer = ask_service(home, request, report=report)
    if answer is None:
        raise ServiceUnreachable(_last_error(home))
    return answer


def ask_service(
    home: Path,
    request: dict[str, Any],
    within_s: float | None = None,
    report: Report | None = None,
    *,
    is_question: bool = False,
) -> dict[str, Any] | None:
    """The running service's answer; None when no service runs. Raises TimeoutError when it is silent for `within_s`.

    Raises ConnectionLost when the service ended after it got the request; for a question, which changes nothing, None.
    `report` gets the progress of long work: a message, how much is done, and of how much.
    """
    try:
        link = places.enter(os.fspath(home), places.GREETING_CONTROL, within_s=within_s)
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        # No service listens, or one that listened before it had read its config exited because of it.
        return None
    except PermissionError as error:
        raise ServiceUnreachable(error.strerror) from None
    try:
        link.sendall(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        answer = _answer(link, report)
    except (ConnectionResetError, BrokenPipeError):
        answer = None
    finally:
        link.close()
    if answer is None and not is_question:
        raise ConnectionLost
    return answer


def running_url(home: Path) -> str | None:
    """The HTTP address of the running service; None when none runs, it hangs, or it has only its private socket."""
    try:
        answer = ask_service(home, {"action": "hello"}, within_s=_HELLO_S, is_question=True)
    except OSError:
        return None
    return None if answer is None else answer.get("localUrl")


def _answer(link: Any, report: Report | None) -> dict[str, Any] | None:
    """Return the last line; the lines before it are progress."""
    buffer = b""
    while data := link.recv(1 << 20):
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            value: dict[str, Any] = json.loads(line)
            if "progress" not in value:
                return value
            if report is not None:
                report(*value["progress"])
    return None


def start_service(home: Path) -> None:
    """Start an on-demand service, as the stdio shim does, and wait until it listens."""
    child = _spawn(home)
    deadline = time.monotonic() + _START_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            places.connect(os.fspath(home)).close()
            # The service outlives this call; it must be reaped, or it stays a zombie of ours.
            threading.Thread(target=child.wait, daemon=True).start()
            return
        except (FileNotFoundError, ConnectionRefusedError):
            if child.poll() not in (None, 0, places.LOCK_HELD):
                raise ServiceUnreachable(_last_error(home)) from None
            time.sleep(0.01)
            if child.poll() == places.LOCK_HELD:
                # Another service has the lock and is about to listen, or a command has it and no service comes of that.
                time.sleep(_LOCKED_PAUSE_S)
                child = _spawn(home)
    raise ServiceUnreachable("the service did not start in time")


def _spawn(home: Path) -> Detached:
    make_private_folders(os.fspath(home))
    return Detached(
        [sys.executable, "-I", "-m", "computer_linker", "serve", "--socket-only", "--idle-exit", "60"],
        {**os.environ, "COMPUTER_LINKER_HOME": os.fspath(home)},
        os.fspath(home / places.LOG_NAME),
    )


def _last_error(home: Path) -> str:
    log = home / places.LOG_NAME
    lines = log.read_text("utf-8", "replace").splitlines()
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return errors[-1] if errors else f"the service did not start; its log says why: {log}"
