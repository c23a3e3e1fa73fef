"""`computer-linker stdio`: a shim that connects a client's pipes to the service, and starts the service when none runs.

It imports little, and only from the standard library: a client waits for this program's start. While a service starts, the
opening of the connection is answered here (`mcp/early.py`). The service gets the client's own descriptors, so after the start
no byte passes through here.
"""

import os
import select
import sys
import time
from _socket import socket

from computer_linker import home as places
from computer_linker.system import Detached, channel, make_private_folders, relay
from computer_linker.transports.mcp.early import EarlyAnswers, load

_START_DEADLINE_S = 30.0
_HANGS = f"it does not answer within {_START_DEADLINE_S:.0f} seconds"
_IDLE_EXIT_S = "60"
_UP_S = 0.05


def main() -> int:
    """Serve MCP on stdin and stdout until either side ends."""
    home = places.state_home()
    link = _running(home)
    early = load(home, dict(os.environ)) if link is None and _passes() else None
    while True:
        log_began = _log_size(home)
        try:
            link = _reach(home, early, link)
        except BrokenPipeError:
            return 0
        except OSError as error:
            link = None
            reason = (
                f"cannot reach the service: {error.strerror or error}",
                "computer-linker doctor says what is wrong",
            )
        else:
            reason = ("", "") if link is not None else _why_not(home, log_began)
        if link is not None:
            return _hand_over(link, home, log_began, early)
        failed = _fail(*reason)
        if early is None or not early.answered or not _refuse(early, *reason):
            return failed


def _running(home: str) -> socket | None:
    """A connection to a service that accepts at once; None otherwise: one that starts listens before it can accept."""
    try:
        link = places.connect(home)
    except OSError:
        return None
    if select.select([link], [], [], _UP_S)[0]:
        return link
    link.close()
    return None


def _why_not(home: str, log_began: int) -> tuple[str, str]:
    """Why the service did not start, and what to do."""
    reason, hint = _last_error(home, log_began) or ("the service did not start, and gave no reason", "")
    return reason, hint or "computer-linker doctor says more; the service's log is in the state folder"


def _refuse(early: EarlyAnswers, reason: str, hint: str) -> bool:
    """Answer waiting requests with the reason; True when the client then calls again, False when it leaves."""
    early.refuse(reason, hint)
    while not early.waiting:
        if not early.read():
            return False
    return True


def _hand_over(link: socket, home: str, log_began: int, early: EarlyAnswers | None) -> int:
    """Leave the connection to the service until it ends."""
    try:
        if early is not None:
            link.sendall(b"".join(early.handed_over()))
        if _pass_descriptors(link) if _passes() else relay(link):
            return 0
    except (BrokenPipeError, ConnectionResetError):
        pass
    cause = _last_error(home, log_began)
    return _fail(
        "the service ended" + (f": {cause[0]}" if cause else ""),
        (cause[1] if cause else "") or "computer-linker history tells what was done; start the client again",
    )


def _reach(home: str, early: EarlyAnswers | None, link: socket | None) -> socket | None:
    """A link to the running service, starting one when needed; None when it did not start."""
    try:
        return _enter(home, early, link)
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
        # No service listens, or one that is about to exit.
        pass
    child: Detached | None = _start_service(home)
    deadline = time.monotonic() + _START_DEADLINE_S
    pause = 0.002
    while time.monotonic() < deadline:
        try:
            return _enter(home, early)
        except ConnectionResetError:
            # It listened before it had read its config, and exited because of it.
            return None
        except (FileNotFoundError, ConnectionRefusedError):
            code = child.poll() if child is not None else None
            if code not in (None, 0, places.LOCK_HELD):
                return None
            if early is None:
                time.sleep(pause)
            else:
                early.wait(None, pause)
            if code == places.LOCK_HELD:
                # Another shim's service won the race and is about to listen, or a command has the lock for a moment.
                child = _start_service(home)
            elif code is not None:
                child = None
            pause = min(pause * 1.5, 0.05)
    return None


def _enter(home: str, early: EarlyAnswers | None, link: socket | None = None) -> socket:
    """Greet the service, passing the client's own pipes where that is possible. A new service greets back when it is up.

    Raises TimeoutError for a service that hangs, BrokenPipeError when the client leaves first.
    """
    link = link or places.connect(home)
    choices = places.chosen(dict(os.environ))
    name, fds = (places.GREETING_FDS, (0, 1)) if _passes() else (places.GREETING_STREAM, ())
    if early is not None:
        if not early.wait(link.fileno(), _START_DEADLINE_S):
            raise TimeoutError(110, _HANGS)
        answered, waiting = early.handed_over()
        choices["early"] = f"{len(answered)},{len(waiting)},{early.digest}"
    try:
        link.settimeout(_START_DEADLINE_S)
        places.greet(link, home, places.greeting_with(name, choices), fds)
        link.settimeout(None)
        return link
    except TimeoutError:
        raise TimeoutError(110, _HANGS) from None
    except BrokenPipeError:
        raise ConnectionResetError(104, "the service ended the connection") from None


def _start_service(home: str) -> Detached:
    if not os.path.lexists(os.path.join(home, "config.json")):  # noqa: PTH118
        # A client that does not pass COMPUTER_LINKER_HOME on would else work in an empty state folder without a word.
        given = (
            "COMPUTER_LINKER_HOME"
            if os.environ.get("COMPUTER_LINKER_HOME")
            else "the default, no COMPUTER_LINKER_HOME given"
        )
        sys.stderr.write(
            f"warning: the state folder {home} ({given}) is new and has no scopes, so clients can do nothing\n"
        )
        sys.stderr.write("hint: computer-linker start FOLDER, or give the client the COMPUTER_LINKER_HOME you set up\n")
    make_private_folders(home)
    log = os.path.join(home, places.LOG_NAME)  # noqa: PTH118
    # -I: neither the client's working folder nor its environment decides what the service imports.
    argv = [sys.executable, "-I", "-m", "computer_linker", "serve", "--socket-only", "--idle-exit", _IDLE_EXIT_S]
    return Detached(argv, _environment(home), log)


def _environment(home: str) -> dict[str, str]:
    """The client's environment without what it chose for its own connection: the service serves others too."""
    kept = {name: value for name, value in os.environ.items() if name not in places.CHOICE_VARIABLES}
    return {**kept, "COMPUTER_LINKER_HOME": home}


def _passes() -> bool:
    return channel.can_pass(0) and channel.can_pass(1)


def _pass_descriptors(link: socket) -> bool:
    """Leave the client's own pipes to the service and wait; True when the service closed the session in order."""
    # Only the service holds the pipes now: when it ends, the client sees the end at once.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return link.recv(64) == b"bye"


def _log_size(home: str) -> int:
    try:
        return os.stat(os.path.join(home, places.LOG_NAME)).st_size  # noqa: PTH116, PTH118
    except OSError:
        return 0


def _last_error(home: str, since: int) -> tuple[str, str] | None:
    """The last error in the service's log since then, and its hint; an older one explains nothing."""
    try:
        with open(os.path.join(home, places.LOG_NAME), "rb") as log:  # noqa: PTH118
            log.seek(max(since, log.seek(0, os.SEEK_END) - 4096))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].startswith("error: "):
            following = lines[at + 1] if at + 1 < len(lines) else ""
            hint = following.removeprefix("hint: ") if following.startswith("hint: ") else ""
            return lines[at].removeprefix("error: "), hint
    return None


def _fail(message: str, hint: str) -> int:
    sys.stderr.write(f"error: {message}\nhint: {hint}\n")
    return 1
