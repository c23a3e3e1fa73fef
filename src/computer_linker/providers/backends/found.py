"""Discovers backends and their kinds of evidence, and chooses one."""

import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.processes import Launch
from computer_linker.errors import LinkError
from computer_linker.policy.programs import find_program
from computer_linker.providers.processes.streams import collect

_MAX_BYTES = 64 * 1024


async def ask(computer: Computer, argv: list[str], deadline_s: float) -> str | None:
    """What the program printed on stdout and stderr; None when it failed to start or did not end in time."""
    if not computer.capabilities().has("processes"):
        return None
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(Path.home()), "LC_ALL": "C.UTF-8"}
    try:
        child = await computer.processes.spawn(Launch(argv=tuple(argv), env=environment))
    except (LinkError, OSError):
        return None
    with anyio.move_on_after(deadline_s):
        child.go()
        out, err, ended = await collect(child, _MAX_BYTES)
        return None if ended.reason is not None else (out + err).decode("utf-8", "replace")
    return None


State = Literal["installed", "ready", "needs_setup", "stale", "unknown", "missing"]
KINDS = ("screenshot", "video_recording", "browser_trace", "browser_verification", "console_logs")
Find = Callable[[str], str | None]
Source = Literal["artifact", "policy", "available", "fallback", "none"]


@dataclass(frozen=True, slots=True)
class Backend:
    """One program that can produce evidence. `state` is `unknown` when its output is not as documented."""

    name: str
    style: str
    available: bool
    state: State
    detail: str
    kinds: Sequence[str] = field(default=())
    health: Literal["healthy", "stale", "unknown"] | None = None
    """The health of its processes, where reported."""


@dataclass(frozen=True, slots=True)
class Preference:
    """What decides between backends: the latest artifact's backend, and the scope's policy."""

    latest: str | None = None
    preferred: str | None = None
    allows_fallback: bool = True


async def discover(computer: Computer, find: Find = find_program) -> list[Backend]:
    """Probe every known backend concurrently, installed or not."""
    probes = (
        _ghost(computer, find),
        _by_version(computer, find, "agent-browser", (*KINDS, "network_log", "document")),
        _by_version(computer, find, "cua-driver", ("screenshot",)),
        _by_version(computer, find, "peekaboo", ("screenshot",)),
    )
    found: dict[int, Backend] = {}

    async def keep(number: int, probe: Coroutine[Any, Any, Backend]) -> None:
        found[number] = await probe

    async with anyio.create_task_group() as group:
        for number, probe in enumerate(probes):
            group.start_soon(keep, number, probe)
    return [found[number] for number in range(len(probes))]


def local_fallback(computer: Computer, find: Find = find_program) -> Backend:
    """This product's own desktop. A video needs ffmpeg; without it a recording is frames."""
    manifest = computer.capabilities()
    screen = manifest.facets.get("screen")
    if screen is None or not manifest.has("screen"):
        reason = screen.reason if screen is not None else "This machine has no desktop session."
        return Backend("local", "built-in", False, "missing", reason)
    kinds = ["screenshot"]
    if manifest.has("accessibility"):
        kinds.append("browser_verification")
    if find("ffmpeg") is not None:
        kinds.append("video_recording")
    return Backend("local", "built-in", True, "ready", f"by {screen.backend}", kinds)


def matrix(
    backends: Sequence[Backend], local: Backend, preference: Preference = Preference()
) -> dict[str, dict[str, Any]]:
    """For each kind of evidence: the programs that produce it, whether our own desktop may, and which would be used."""
    rows: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        able = [backend for backend in backends if backend.available and kind in backend.kinds]
        falls_back = preference.allows_fallback and local.available and kind in local.kinds
        use, source = choose(able, preference)
        if use is None and falls_back:
            use, source = local.name, "fallback"
        rows[kind] = {
            "backends": [backend.name for backend in able],
            "localFallback": falls_back,
            "use": use,
            "source": source,
        }
    return rows


def choose(backends: Sequence[Backend], preference: Preference = Preference()) -> tuple[str | None, Source]:
    """The backend to use: that of the latest artifact, else the policy's preferred one, else the first available."""
    there = [backend.name for backend in backends if backend.available]
    if preference.latest is not None and preference.latest in there:
        return preference.latest, "artifact"
    if preference.preferred is not None and preference.preferred in there:
        return preference.preferred, "policy"
    return (there[0], "available") if there else (None, "none")


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


async def _by_version(computer: Computer, find: Find, name: str, kinds: Sequence[str]) -> Backend:
    style = "cli"
    path = find(name)
    if path is None:
        return Backend(name, style, False, "missing", f"{name} is not installed.")
    output = await ask(computer, [path, "--version"], 5)
    version = re.search(r"\d+(?:\.\d+)+", output or "")
    if version is None:
        return Backend(name, style, False, "unknown", "It did not say its version within five seconds.")
    return Backend(name, style, True, "installed", f"version {version.group(0)}", kinds)
