"""Discovers backends and their kinds of evidence, and chooses one."""

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import anyio

from computer_linker.computer.base import Computer
from computer_linker.policy.writers import find_program
from computer_linker.providers.backends import known
from computer_linker.providers.backends.definition import KINDS, Backend, ExternalBackend, Find
from computer_linker.providers.backends.known.ghost_os import process_health, setup_state

__all__ = [
    "Backend", "Preference", "choose", "discover", "known_backends", "local_fallback", "matrix", "process_health",
    "setup_state",
]  # fmt: skip
Source = Literal["artifact", "policy", "available", "fallback", "none"]
_LOCAL_TOUCHPOINTS = ("artifact:write", "screen:capture", "allowLocalFallback", "excludedApplications")


@dataclass(frozen=True, slots=True)
class Preference:
    """What decides between backends: the latest artifact's backend, and the scope's policy."""

    latest: str | None = None
    preferred: str | None = None
    allows_fallback: bool = True


@cache
def known_backends() -> tuple[ExternalBackend, ...]:
    """The backend of each file in `known/`, Ghost OS first, then by name."""
    modules = [importlib.import_module(f"{known.__name__}.{one.name}") for one in pkgutil.iter_modules(known.__path__)]
    return tuple(sorted((module.BACKEND for module in modules), key=lambda one: (one.name != "ghost-os", one.name)))


async def discover(computer: Computer, find: Find = find_program) -> list[Backend]:
    """Probe every known backend concurrently, installed or not."""
    found: dict[str, Backend] = {}

    async def keep(backend: ExternalBackend) -> None:
        found[backend.name] = await backend.probe(computer, find)

    async with anyio.create_task_group() as group:
        for backend in known_backends():
            group.start_soon(keep, backend)
    return [found[backend.name] for backend in known_backends()]


def local_fallback(computer: Computer, find: Find = find_program) -> Backend:
    """This product's own desktop. A video needs ffmpeg; without it a recording is frames."""
    manifest = computer.capabilities()
    screen = manifest.facets.get("screen")
    if screen is None or not manifest.has("screen"):
        reason = screen.reason if screen is not None else "This machine has no desktop session."
        return Backend("local", "built-in", False, "missing", reason, touchpoints=_LOCAL_TOUCHPOINTS)
    kinds = ["screenshot"]
    if manifest.has("accessibility"):
        kinds.append("browser_verification")
    if find("ffmpeg") is not None:
        kinds.append("video_recording")
    return Backend("local", "built-in", True, "ready", f"by {screen.backend}", kinds, touchpoints=_LOCAL_TOUCHPOINTS)


def matrix(
    backends: Sequence[Backend], local: Backend, preference: Preference = Preference()
) -> dict[str, dict[str, Any]]:
    """For each kind of evidence: the programs that produce it, whether our own desktop may, and which would be used."""
    rows: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        able = [backend for backend in backends if backend.available and kind in backend.kinds]
        falls_back = preference.allows_fallback and local.available and kind in local.kinds
        use, source = choose(able, preference)  # of those that can make it
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
    """The backend to use: the latest artifact's, ready or not, else the policy's preferred one, else the first available."""
    there = [backend.name for backend in backends if backend.available]
    if preference.latest is not None and any(backend.name == preference.latest for backend in backends):
        return preference.latest, "artifact"
    if preference.preferred is not None and preference.preferred in there:
        return preference.preferred, "policy"
    return (there[0], "available") if there else (None, "none")
