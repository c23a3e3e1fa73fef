"""What the launcher's numbers mean: how a child ended, or why it could not become its program."""

import os
import signal

from computer_linker.computer.facets.processes import Ended


def ended_of(status: int, failure: str | None, reached: tuple[tuple[str, int], ...]) -> Ended:
    """How a process ended, from the status the launcher reaped."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Ended(128 + number, _signal_name(number), failure, reached)
    return Ended(os.WEXITSTATUS(status), None, failure, reached)


def reason_of(number: int, step: str) -> str:
    """Why a child could not become its program, from the error number and the step it was at."""
    if step == "sync":
        return f"its record in the history could not be kept on the disk ({os.strerror(number)})"
    if step == "user namespace":
        return f"this system gives the service no user namespace to build its root in ({os.strerror(number)})"
    if step == "mount":
        return f"this system does not let the service build its root ({os.strerror(number)})"
    return f"{os.strerror(number)} ({step})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
