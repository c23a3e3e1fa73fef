"""Runs the decoder: one sandboxed process per file, without network, bounded in time, memory and output."""

import json
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import anyio

import computer_linker
from computer_linker.computer.base import Computer
from computer_linker.computer.facets.processes import Ended, Launch, NamesChanged, ProcessLimits
from computer_linker.errors import (
    ExecutionFailed,
    InvalidRequest,
    LimitExceeded,
    LinkError,
    NotFound,
    ProviderUnavailable,
    TimedOut,
)
from computer_linker.extras import Extra, remedy
from computer_linker.model.scope import ScopePolicy
from computer_linker.providers.processes.streams import collect
from computer_linker.providers.sandbox.boundary import NO_BOUNDARY, Boundary, Confinement
from computer_linker.providers.sandbox.probe import interpreter, interpreter_places
from computer_linker.providers.sandbox.sandbox import Sandbox, Scanned
from computer_linker.services import Services
from computer_linker.system import os
from computer_linker.system.sealing import nameless

TIME_S = 30.0
MEMORY = 768 << 20
MAX_OUTPUT = 64 << 20
_AT_ONCE = 4
_PROGRAM = "from computer_linker.providers.documents.inside.main import main; main()"
_PATHS = "import sys; sys.path[:0] = {paths!r}"
"""Without `site`, which costs as much time as the rest of the start: the folders it would add are named."""
_EXTRAS: Mapping[str, Extra] = {"pyarrow": "parquet", "pillow-heif": "heic"}
_REFUSALS: Mapping[str, type[LinkError]] = {
    "invalid_request": InvalidRequest, "limit_exceeded": LimitExceeded, "not_found": NotFound,
    "execution_failed": ExecutionFailed,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the decoder made of a file: facts and text, and bytes such as a picture or the edited file."""

    facts: dict[str, Any] = field(default_factory=dict)
    payload: bytes = b""
    boundary: str = "none"


class Decoder:
    """Decodes files of one service, a bounded number at a time."""

    def __init__(self, computer: Computer, sandbox: Sandbox) -> None:
        self._computer = computer
        self._sandbox = sandbox
        self._limiter = anyio.Semaphore(_AT_ONCE)
        self.program = _PROGRAM
        """What the process runs, with its import path in front."""
        self.time_s = TIME_S

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.use(Computer), services.use(Sandbox))

    async def run(self, fd: int, request: Mapping[str, Any], policy: ScopePolicy) -> Decoded:
        """Decode the open file as the request asks. The descriptor stays the caller's.

        Raises:
            ProviderUnavailable: the policy requires a kernel boundary that is missing here, or a library is not installed.
            LimitExceeded, TimedOut, ExecutionFailed: the file exceeded a limit or is damaged.
        """
        boundary = await self._boundary(policy)
        async with self._limiter:
            out, ended, shown = await self._decoded(fd, request, boundary)
        head, _, payload = out.partition(b"\n")
        try:
            facts = json.loads(head)
        except ValueError:
            raise _ended_early(ended, out) from None
        if "error" in facts:
            raise _refusal(facts)
        return Decoded(facts, payload, shown)

    async def _boundary(self, policy: ScopePolicy) -> Boundary:
        boundary = NO_BOUNDARY if policy.sandbox == "off" else await self._sandbox.probe()
        if policy.sandbox == "required" and not boundary.holds:
            raise ProviderUnavailable(
                "This scope requires a sandbox, and none can be had here, so documents are not decoded.",
                detail=boundary.detail, remedy="Install bubblewrap.",
            )  # fmt: skip
        return boundary

    async def _decoded(self, fd: int, request: Mapping[str, Any], boundary: Boundary) -> tuple[bytes, Ended, str]:
        paths = _import_path()
        argv = (interpreter(), "-I", "-S", "-c", _PATHS.format(paths=paths) + "\n" + self.program)
        # The descriptor only reads, but could be opened again for writing.
        confinement = Confinement(programs=(*interpreter_places(), paths[0]), is_bare=True, only_reads=True)
        environ = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/tmp"}  # noqa: S108  # the sandbox's own
        plan, env = self._sandbox.wrap(argv, confinement, environ, boundary=boundary, scanned=Scanned())
        try:
            order = json.dumps({**request, "memory": MEMORY, "seconds": TIME_S})
            launch = Launch(
                (*plan.argv, order), env, cwd_fd=plan.cwd_fd, stdin_fd=fd, fds=plan.fds, gate=plan.gate, wrapped=plan.wrapped,
                kernel=plan.kernel, staging=plan.staging, limits=ProcessLimits(processes=64, memory_bytes=MEMORY, file_bytes=0),
            )  # fmt: skip
            out, ended = await self._ran(launch)
        finally:
            plan.release()
        return out, ended, plan.boundary

    async def _ran(self, launch: Launch) -> tuple[bytes, Ended]:
        for attempt in range(3):
            try:
                child = await self._computer.processes.spawn(launch)
                break
            except NamesChanged:
                if attempt == 2:
                    raise ExecutionFailed("The decoder's sandbox could not be prepared.") from None
        child.go()
        try:
            with anyio.fail_after(self.time_s):
                out, _, ended = await collect(child, MAX_OUTPUT)
        except TimeoutError:
            raise TimedOut(f"Decoding took longer than {self.time_s:.0f} s and was stopped.") from None
        return out, ended


@contextmanager
def in_memory(content: bytes) -> Iterator[int]:
    """A descriptor of a file with this content that has no name."""
    fd = nameless("document")
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        yield fd
    finally:
        os.close(fd)


@lru_cache(maxsize=1)
def _import_path() -> list[str]:
    """The folder of this package, and that of the libraries."""
    package = Path(computer_linker.__file__).parents[1]
    return [os.path.realpath(package), os.path.realpath(sysconfig.get_path("platlib"))]


def _refusal(facts: dict[str, Any]) -> LinkError:
    message = str(facts["message"])
    if facts["error"] == "missing":
        extra = _EXTRAS.get(str(facts.get("library")), "documents")
        return ProviderUnavailable(f"{message} {remedy(extra)}", library=facts.get("library"), extra=extra)
    return _REFUSALS.get(str(facts["error"]), ExecutionFailed)(message)


def _ended_early(ended: Ended, out: bytes) -> LinkError:
    """Why a decoder gave no answer: a limit ended it, or it crashed."""
    if ended.reached or ended.signal in ("SIGKILL", "SIGXCPU") or len(out) >= MAX_OUTPUT:
        return LimitExceeded(
            f"The file needs more than a decoder may use ({MEMORY >> 20} MB of memory, {TIME_S:.0f} s).",
            signal=ended.signal,
        )
    return ExecutionFailed("The decoder ended without an answer: the file is damaged or hostile.", signal=ended.signal)
