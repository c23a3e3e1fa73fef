"""The command line's way to the running service: one request and one answer over the private socket."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from computer_linker import home as places

_START_DEADLINE_S = 30.0


class ServiceUnreachable(Exception):
    """No service answers and none could be started; the message says why."""


def call_service(home: Path, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a tool in the service of this state folder, starting an on-demand service when none runs."""
    return ask_or_start(home, {"tool": tool, "arguments": arguments})


def ask_or_start(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """The service's answer, from an on-demand service when none runs yet."""
    answer = ask_service(home, request)
    if answer is None:
        start_service(home)
        answer = ask_service(home, request)
    if answer is None:
        raise ServiceUnreachable(_last_error(home))
    return answer


def ask_service(home: Path, request: dict[str, Any], within_s: float | None = None) -> dict[str, Any] | None:
    """The running service's answer; None when no service runs. Raises TimeoutError when it is silent for `within_s`."""
    try:
        link = places.enter(os.fspath(home), places.GREETING_CONTROL, within_s=within_s)
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        # None listens, or one that listened before it had read its config ended over that.
        return None
    except PermissionError as error:
        raise ServiceUnreachable(error.strerror) from None
    try:
        link.sendall(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        answer = _line(link)
    except (ConnectionResetError, BrokenPipeError):
        return None
    finally:
        link.close()
    if not answer:
        return None
    value: dict[str, Any] = json.loads(answer)
    return value


def _line(link: Any) -> bytes:
    chunks = []
    while data := link.recv(1 << 20):
        chunks.append(data)
        if data.endswith(b"\n"):
            break
    return b"".join(chunks)


def start_service(home: Path) -> None:
    """Start an on-demand service, as the stdio shim does, and wait until it listens."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (home / places.LOG_NAME).open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-I", "-m", "computer_linker", "serve", "--socket-only", "--idle-exit", "60"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "COMPUTER_LINKER_HOME": os.fspath(home)},
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            places.connect(os.fspath(home)).close()
            # The service outlives this call; someone must take note of its end, or it stays as a zombie of ours.
            threading.Thread(target=child.wait, daemon=True).start()
            return
        except (FileNotFoundError, ConnectionRefusedError):
            if child.poll() not in (None, 0, 75):
                raise ServiceUnreachable(_last_error(home)) from None
            time.sleep(0.01)
    raise ServiceUnreachable("the service did not start in time")


def _last_error(home: Path) -> str:
    log = home / places.LOG_NAME
    lines = log.read_text("utf-8", "replace").splitlines()
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return errors[-1] if errors else f"the service did not start; its log says why: {log}"
