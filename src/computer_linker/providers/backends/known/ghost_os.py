"""Ghost OS: the `ghost` program of macOS, whose readiness is what `ghost status` and `ghost doctor` print."""

import re
from typing import Literal

from computer_linker.computer.base import Computer
from computer_linker.providers.backends.definition import Backend, ExternalBackend, Find, State, ask


def setup_state(status: str | None) -> State:
    """The state from `ghost status`. Anything but the documented outputs is unknown."""
    if status is None:
        return "unknown"
    text = status.lower()
    if re.search(r"run ghost setup|ghost setup|not granted|not configured", text):
        return "needs_setup"
    return "ready" if re.search(r"status:\s*ready\b", text) else "unknown"


def process_health(doctor: str | None) -> Literal["healthy", "stale", "unknown"]:
    """The health of its processes from `ghost doctor`."""
    if doctor is None:
        return "unknown"
    if re.search(r"\[fail\]\s*processes:", doctor, re.IGNORECASE):
        return "stale"
    counted = re.search(r"processes:\s*(\d+)", doctor, re.IGNORECASE)
    if counted is not None:
        return "healthy" if int(counted.group(1)) <= 1 else "stale"
    return "healthy" if re.search(r"\[ok\]\s*processes:", doctor, re.IGNORECASE) else "unknown"


async def _ghost(computer: Computer, find: Find) -> Backend:
    path = find("ghost")
    if path is None:
        return Backend(
            "ghost-os", "cli", False, "missing", "Install Ghost OS (macOS): it provides the `ghost` program."
        )
    state = setup_state(await ask(computer, [path, "status"], 5))
    health = process_health(await ask(computer, [path, "doctor"], 10))
    if state == "ready" and health == "stale":
        state = "stale"
    detail = {
        "ready": "ready",
        "needs_setup": "Run: ghost setup",
        "stale": "Old ghost processes are left over. Run: ghost doctor",
        "unknown": "It did not answer as documented within its time.",
    }[state]
    return Backend("ghost-os", "cli", state == "ready", state, f"{detail}; processes {health}", ("screenshot",), health)


BACKEND = ExternalBackend("ghost-os", _ghost)
