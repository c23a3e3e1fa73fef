"""The race harness: while commands start and stop, others rearrange the scope, and checks run all the time.

A check that hits is recorded under its name with the moment and an example; nothing is expected to hit. Under Landlock alone
secrets and protected names inside a scope are open by design (SECURITY.md), so those checks are left out there.
"""

import hashlib
import itertools
import json
import os
import random
import shutil
import stat
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attacks.race_programs import CHURN, EXCHANGE, LOOK, MOVE
from support.road import FOLDER_CAPABILITIES
from support.service import TOKEN, Service, serving
from support.waiting import wait_for

PYTHON = "/usr/bin/python3"
ROUND_S = 4.0
INSIDE = {"secret inside", "protected changed"}
_ROUNDS = ((MOVE,), (EXCHANGE,), (CHURN, EXCHANGE, MOVE))
_TOP = {".env", ".git", ".vscode", ".mcp.json", "sub", "repos", "node_modules", "inner", "README", "dist"}


@dataclass
class Hit:
    """How often a check has failed, and the first time."""

    after_s: float
    example: str
    count: int = 1


@dataclass
class Report:
    """What a run did and saw."""

    seed: int
    started: float = field(default_factory=time.monotonic)
    hits: dict[str, Hit] = field(default_factory=dict)
    runs: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    boundaries: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hit(self, check: str, example: str) -> None:
        with self._lock:
            if check in self.hits:
                self.hits[check].count += 1
            else:
                self.hits[check] = Hit(round(time.monotonic() - self.started, 2), example[:300])

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.runs} commands looked, refused {self.refused}, {sorted(self.boundaries)}"]
        lines += [
            f"  {name}: {hit.count} times, first after {hit.after_s} s: {hit.example}"
            for name, hit in self.hits.items()
        ]
        return "\n".join(lines)


class Ground:
    """The folders: the scope with all it holds, a nested and a private one, and what lies outside."""

    def __init__(self, base: Path, dice: random.Random) -> None:
        self.base, self.root, self.outside = base, base / "app", base / "outside"
        self.private, self.home = base / "private", base / "home"
        self.canaries = {
            kind: f"CANARY:{kind}:{dice.getrandbits(64):016x}" for kind in ("outside", "private", "secret")
        }
        self.originals: set[int] = set()
        self.laid: set[str] = set()
        self.held: dict[str, int] = {}
        self.before: dict[str, str] = {}
        self.with_modes = True
        """Landlock does not hold chmod (SECURITY.md), so modes are compared under bubblewrap alone."""

    def lay(self) -> None:
        """Everything as before the first round; the scopes' own folders stay the same objects."""
        held, self.held = self.held, {}
        for fd in held.values():
            os.close(fd)
        for folder in (self.root, self.outside, self.private):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        _write(self.outside / "deep" / "file.txt", self.canaries["outside"])
        _write(self.outside / "canary.txt", self.canaries["outside"])
        _write(self.private / "key.txt", self.canaries["private"])
        _write(self.root / "README", "a project")
        _write(self.root / "inner" / "file.txt", "a scope of its own")
        _write(self.root / "node_modules" / "pkg" / "index.js", "module.exports = 1")
        for name in (".env", "sub/.env", "sub/deep/id_rsa", "sub/deep/.env"):
            _write(self.root / name, self.canaries["secret"])
        for name in (".", "repos/one", "repos/two"):
            made = subprocess.run(["git", "init", "-q", str(self.root / name)], capture_output=True, text=True)
            assert made.returncode == 0, made.stderr
        _write(self.root / ".vscode" / "tasks.json", "{}")
        _write(self.root / ".mcp.json", "{}")
        self.originals = {
            path.stat().st_ino for path in self.root.rglob("*") if path.is_file() and self._has_canary(path)
        }
        self.laid = {path.name for path in self.root.rglob("*")}
        protected = (".git/hooks", ".vscode", "repos/one/.git/hooks", "repos/two/.git/hooks")
        self.held = {name: os.open(self.root / name, os.O_RDONLY | os.O_DIRECTORY) for name in protected}
        files = (".git/config", ".mcp.json", "repos/one/.git/config", "repos/two/.git/config")
        self.held |= {name: os.open(self.root / name, os.O_RDONLY) for name in files}
        self.before = self.state()

    def state(self) -> dict[str, str]:
        """Digests of what must not change: protected names wherever they are now, and all that lies outside."""
        found = {f"protected {name}": _digest_fd(fd) for name, fd in self.held.items()}
        found["outside"] = _digest(self.outside, self.with_modes) + _digest(self.private, self.with_modes)
        found["beside"] = ",".join(sorted(name for name in os.listdir(self.base)))
        return found

    def copies(self) -> list[str]:
        """Files of the scope that hold a canary and are not those the owner put there."""
        found = []
        for place, folders, files in os.walk(self.root):
            for name in files:
                path = Path(place) / name
                try:
                    info = path.lstat()
                    if stat.S_ISREG(info.st_mode) and info.st_ino not in self.originals and self._has_canary(path):
                        found.append(str(path))
                except OSError:
                    continue
            if len(found) > 20:
                folders.clear()
        return found

    def _has_canary(self, path: Path) -> bool:
        with path.open("rb") as file:
            text = file.read(4096)
        return any(canary.encode() in text for canary in (*self.canaries.values(), TOKEN))


def run(base: Path, kind: str, seconds: float, seed: int) -> Report:
    """Run rounds for this long against one kind of boundary."""
    dice = random.Random(seed)
    report, ground = Report(seed), Ground(base, dice)
    before = leftovers()
    ground.with_modes = kind == "bubblewrap"
    ground.lay()
    common: dict[str, Any] = {"allowedCommands": ["*"], "allowShell": True, "maxProcesses": 256, "maxMemoryMb": 1024}
    scopes = [
        _scope("app", ground.root, **common),
        _scope("net", ground.root, network=True, **common),
        _scope("inner", ground.root / "inner", **common),
        _scope("private", ground.private),
    ]
    (base / "no-bwrap").mkdir()
    (base / "tmp").mkdir()
    env = {"TMPDIR": str(base / "tmp")} | ({"PATH": str(base / "no-bwrap")} if kind == "landlock" else {})
    (base / "root").mkdir()
    with serving(base, token=TOKEN, env=env, scopes=scopes) as service:
        end = time.monotonic() + seconds
        ground.before = ground.state()
        for programs in itertools.cycle(_ROUNDS):
            if time.monotonic() >= end:
                break
            _Round(service, ground, report, dice.getrandbits(32), kind).run(programs, ROUND_S)
    _check_left(report, before, base / "tmp")
    if kind != "bubblewrap":
        for check in INSIDE:
            report.hits.pop(check, None)
    return report


class _Round:
    """Some seconds of commands against one freshly laid ground."""

    def __init__(self, service: Service, ground: Ground, report: Report, seed: int, kind: str) -> None:
        self.service, self.ground, self.report, self.kind = service, ground, report, kind
        self.seed = seed
        self.is_over = threading.Event()

    def run(self, programs: tuple[str, ...], seconds: float) -> None:
        wait_for(self._is_laid, step_s=0.5)
        processes = [self._start(program, seconds) for program in programs]
        threads = [
            threading.Thread(target=self._look, args=(scope, number)) for number, scope in enumerate(("app", "net"))
        ]
        threads.append(threading.Thread(target=self._watch))
        for thread in threads:
            thread.start()
        self.is_over.wait(seconds)
        self.is_over.set()
        for thread in threads:
            thread.join(90)
            assert not thread.is_alive(), "a call did not come back"
        self._stop(processes)
        self._check()

    def _is_laid(self) -> bool:
        """Lay the ground. Where orphans are possible, the service looks for planted names a moment after a command has ended,
        and takes away the repositories that are made here meanwhile.
        """
        try:
            self.ground.lay()
        except (AssertionError, FileNotFoundError, subprocess.CalledProcessError):
            return False
        return True

    def _argv(self, program: str, seconds: float, salt: int = 0) -> list[str]:
        ground = self.ground
        targets = [str(ground.outside), str(ground.private), str(ground.home), f"{ground.outside}/canary.txt"]
        words = [str(self.seed + salt), str(seconds), str(ground.home), str(self.service.port)]
        return [PYTHON, "-c", program, *words, *targets]

    def _call(self, scope: str, op: str, target: str = ".", **parts: Any) -> dict[str, Any]:
        link = self.service.http()
        try:
            return link.control("computer_operation", scope=scope, op=op, target=target, **parts)
        finally:
            link.close()

    def _start(self, program: str, seconds: float) -> str | None:
        told = self._call("app", "command.start", input={"command": self._argv(program, seconds + 30)})
        if not told.get("ok"):
            self._refused(told)
            return None
        return str(told["data"]["processId"])

    def _stop(self, processes: list[str | None]) -> None:
        for process in processes:
            if process is None:
                continue
            read = self._call("app", "command.read", process)
            self._judge("app", "".join(chunk["text"] for chunk in read.get("data", {}).get("chunks", [])))
            stopped = self._call("app", "command.stop", process, options={"signal": "kill"})
            # What still ran would go on in the next round's freshly laid folders.
            assert stopped.get("ok"), stopped

    def _look(self, scope: str, number: int) -> None:
        turn = 0
        while not self.is_over.is_set():
            turn += 1
            where = "inner" if turn % 5 == 0 and scope == "app" else scope
            argv = self._argv(LOOK, 3, number * 1000 + turn)
            told = self._call(where, "command.run", input={"command": argv}, options={"timeoutSeconds": 20})
            if not told.get("ok"):
                self._refused(told)
                # The churn may have put a thing in the way that no command starts beside.
                self.is_over.wait(0.02)
                continue
            self.report.runs += 1
            self.report.boundaries.add(told["data"]["boundary"])
            self._judge(where, told["data"]["stdout"] + told["data"]["stderr"])

    def _judge(self, scope: str, text: str) -> None:
        """Look through what a command printed."""
        for kind, canary in self.ground.canaries.items():
            if canary in text:
                line = next(line for line in text.splitlines() if canary in line)
                self.report.hit("secret inside" if kind == "secret" else f"canary of {kind}", line)
        if TOKEN in text:
            self.report.hit("owner token", text[:200])
        for line in text.splitlines():
            if line.startswith("OWNER "):
                self.report.hit("owner answer", line)
            if line.startswith("NAMES ") and scope != "inner":
                # A program may have moved anything that was laid to the top. A planted name that is being taken away, or is too
                # much to be kept, is the program's own under another name.
                known = _TOP | self.ground.laid
                names = [name for name in json.loads(line[6:]) if ".refused-" not in name]
                ours = [name for name in names if name not in known and not name.startswith("c-")]
                if ours:
                    self.report.hit("names of ours", str(ours))

    def _watch(self) -> None:
        while not self.is_over.wait(0.1):
            self._compare()

    def _compare(self) -> None:
        now = self.ground.state()
        for name, digest in self.ground.before.items():
            if name == "beside":
                if now[name] != digest:
                    self.report.hit("outside changed", now[name])
            elif now[name] != digest:
                self.report.hit("outside changed" if name == "outside" else "protected changed", name)

    def _check(self) -> None:
        """What can be seen once everything has stopped."""
        self._compare()
        if self.kind == "bubblewrap":
            for path in self.ground.copies():
                self.report.hit("canary copied into the scope", path)
            for name in (".git", ".vscode", ".mcp.json", ".env"):
                if not (self.ground.root / name).exists():
                    self.report.hit("protected changed", f"{name} was moved away")

    def _refused(self, told: dict[str, Any]) -> None:
        code = str(told.get("error", {}).get("code", told))
        self.report.refused[code] = self.report.refused.get(code, 0) + 1


def leftovers() -> dict[str, set[str]]:
    """What a service could leave on this machine."""
    groups = {
        os.path.join(place, name)
        for place, folders, _ in os.walk("/sys/fs/cgroup")
        for name in folders
        if name.startswith("computer-linker-")
    }
    return {
        "mounts": set(Path("/proc/self/mountinfo").read_text().splitlines()),
        "control groups": groups,
    }


def _check_left(report: Report, before: dict[str, set[str]], temporary: Path) -> None:
    seed_words = {word for word in _commands() if "CANARY:[a-z]+" in word}
    if seed_words:
        report.hit("left behind", f"processes: {len(seed_words)}")
    left = os.listdir(temporary)
    if left:
        report.hit("left behind", f"temporary files: {left[:3]}")
    for name, there in leftovers().items():
        # Other services on this machine come and go; a group of one that is gone is nobody's any more.
        new = {entry for entry in there - before[name] if _is_ours(name, entry)}
        if new:
            report.hit("left behind", f"{name}: {sorted(new)[:3]}")


def _is_ours(kind: str, entry: str) -> bool:
    if kind != "control groups":
        return True
    pid = entry.rpartition("computer-linker-")[2].partition("-")[0]
    return not Path(f"/proc/{pid}").exists()


def _commands() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return found


def _scope(name: str, root: Path, **policy: Any) -> dict[str, Any]:
    return {"id": name, "type": "folder", "roots": [str(root)], "capabilities": FOLDER_CAPABILITIES, "policy": policy}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _digest(folder: Path, with_modes: bool) -> str:
    """Names, kinds, contents and modes of a whole tree."""
    found = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(folders + files):
            path = Path(place) / name
            info = path.lstat()
            text = path.read_bytes() if stat.S_ISREG(info.st_mode) else b""
            mode = info.st_mode if with_modes else stat.S_IFMT(info.st_mode)
            found.append(f"{path}:{mode:o}:{hashlib.sha256(text).hexdigest()}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _digest_fd(fd: int) -> str:
    """The same of what a descriptor holds, wherever it lies now."""
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        inside = [(name, _content(fd, name)) for name in sorted(os.listdir(fd))]
        return hashlib.sha256(repr(inside).encode()).hexdigest()
    return hashlib.sha256(os.pread(fd, 1_000_000, 0)).hexdigest()


def _content(fd: int, name: str) -> str:
    try:
        inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=fd)
    except OSError as error:
        return str(error.errno)
    try:
        info = os.fstat(inner)
        text = os.read(inner, 1_000_000) if stat.S_ISREG(info.st_mode) else b""
        return f"{info.st_mode:o}:{hashlib.sha256(text).hexdigest()}"
    finally:
        os.close(inner)
