"""Which backends there are, what each can prove, and which one to use."""

import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from computer_linker.computer.base import Computer
from computer_linker.providers.backends.ask import ask
from computer_linker.providers.child import find_program

State = Literal["installed", "ready", "needs_setup", "stale", "unknown", "missing"]
KINDS = ("screenshot", "video_recording", "browser_trace", "browser_verification", "console_logs")
Find = Callable[[str], str | None]
Source = Literal["artifact", "policy", "available", "fallback", "none"]


@dataclass(frozen=True, slots=True)
class Backend:
    """One program that can make proof. `state` is `unknown` when it did not answer as documented: never `ready` by guess."""

    name: str
    style: str
    available: bool
    state: State
    detail: str
    kinds: Sequence[str] = field(default=())
    health: Literal["healthy", "stale", "unknown"] | None = None
    """Of its processes, where it tells."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What decides between backends: who made the latest artifact, and what the scope's policy says."""

    latest: str | None = None
    preferred: str | None = None
    allows_fallback: bool = True


async def discover(computer: Computer, find: Find = find_program) -> list[Backend]:
    """Every known backend, there or not, asked all at once."""
    looks = (
        _ghost(computer, find),
        _by_version(computer, find, "agent-browser", (*KINDS, "network_log", "document")),
        _by_version(computer, find, "cua-driver", ("screenshot",)),
        _by_version(computer, find, "peekaboo", ("screenshot",)),
    )
    found: dict[int, Backend] = {}

    async def keep(number: int, look: Coroutine[Any, Any, Backend]) -> None:
        found[number] = await look

    async with anyio.create_task_group() as group:
        for number, look in enumerate(looks):
            group.start_soon(keep, number, look)
    return [found[number] for number in range(len(looks))]


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


def matrix(backends: Sequence[Backend], local: Backend, wish: Wish = Wish()) -> dict[str, dict[str, Any]]:
    """For each kind of proof: the available programs that make it, whether our own desktop may, and which would be used."""
    rows: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        able = [backend for backend in backends if backend.available and kind in backend.kinds]
        falls_back = wish.allows_fallback and local.available and kind in local.kinds
        use, source = choose(able, wish)
        if use is None and falls_back:
            use, source = local.name, "fallback"
        rows[kind] = {
            "backends": [backend.name for backend in able],
            "localFallback": falls_back,
            "use": use,
            "source": source,
        }
    return rows


def choose(backends: Sequence[Backend], wish: Wish = Wish()) -> tuple[str | None, Source]:
    """Which backend to use, by the order: who made the latest artifact, whom the policy prefers, the first that is there."""
    there = [backend.name for backend in backends if backend.available]
    if wish.latest is not None and wish.latest in there:
        return wish.latest, "artifact"
    if wish.preferred is not None and wish.preferred in there:
        return wish.preferred, "policy"
    return (there[0], "available") if there else (None, "none")


def setup_state(status: str | None) -> State:
    """What `ghost status` means. Anything that is not plainly one of the documented answers is unknown."""
    if status is None:
        return "unknown"
    text = status.lower()
    if re.search(r"run ghost setup|ghost setup|not granted|not configured", text):
        return "needs_setup"
    return "ready" if re.search(r"status:\s*ready\b", text) else "unknown"


def process_health(doctor: str | None) -> Literal["healthy", "stale", "unknown"]:
    """What `ghost doctor` says of its processes."""
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
    told = await ask(computer, [path, "--version"], 5)
    version = re.search(r"\d+(?:\.\d+)+", told or "")
    if version is None:
        return Backend(name, style, False, "unknown", "It did not say its version within five seconds.")
    return Backend(name, style, True, "installed", f"version {version.group(0)}", kinds)
