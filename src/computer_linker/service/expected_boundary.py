"""The boundary as an earlier service probed it, for reports until this service's own probe is done.

Only reports use it: a command waits for the probe of the service that runs it.
"""

import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Self

from pydantic_core import from_json, to_json

from computer_linker import __version__
from computer_linker.providers.sandbox.boundary import Boundary
from computer_linker.services import Services
from computer_linker.system.proc_files import read
from computer_linker.transports.mcp.prepared import write_prepared

FILE_NAME = f"boundary-{__version__}.json"
_FILES = (
    "/proc/self/attr/current",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
)
_OF_THE_PROCESS = (b"Uid:", b"Gid:", b"CapEff:", b"CapBnd:", b"NoNewPrivs:", b"Seccomp:")


class ExpectedBoundary:
    """What the startup probe will most likely find; nothing before it begins and once it has ended."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._is_awaited = False
        self._read: Boundary | None = None

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    def begin(self) -> None:
        """The probe is under way: expect what was found in the same state of this machine."""
        self._is_awaited = True

    def end(self) -> None:
        """The probe has ended: its result alone counts."""
        self._is_awaited, self._read = False, None

    @property
    def boundary(self) -> Boundary | None:
        if self._is_awaited and self._read is None:
            self._read = self._kept()
            self._is_awaited = self._read is not None
        return self._read

    def keep(self, found: Boundary) -> None:
        """Keep for the next service what was found; one that found no boundary is not believed. Raises OSError."""
        if not found.holds:
            (self._services.home / FILE_NAME).unlink(missing_ok=True)
            return
        kept = {"state": self._state(), "boundary": asdict(found)}
        write_prepared(self._services.home, to_json(kept), FILE_NAME)

    def _kept(self) -> Boundary | None:
        try:
            kept = from_json((self._services.home / FILE_NAME).read_bytes())
            return Boundary(**kept["boundary"]) if kept["state"] == self._state() else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _state(self) -> list[str]:
        """What decides whether a boundary holds: the kernel's run, how this process is confined, the programs, the roots.

        Raises OSError where the kernel does not tell.
        """
        facts = [Path("/proc/sys/kernel/random/boot_id").read_text("ascii")]
        facts += [os.readlink(f"/proc/self/ns/{name}") for name in ("user", "mnt", "pid", "net")]  # noqa: PTH115
        facts += [read(path).decode("utf-8", "replace") for path in _FILES]
        status = read("/proc/self/status").splitlines()
        facts += [line.decode() for line in status if line.startswith(_OF_THE_PROCESS)]
        for program in (shutil.which("bwrap"), sys.executable):
            found = None if program is None else Path(program).stat()
            facts.append(f"{program} {found and (found.st_ino, found.st_size, found.st_mtime_ns)}")
        facts += [os.environ.get("PATH", ""), str(self._services.home)]
        return facts + [root for scope in self._services.config.scopes for root in scope.roots]
