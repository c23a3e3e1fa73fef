"""The ground attacks are fought on: folders inside and outside the scopes, and one real service between them."""

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.commands import command
from support.repositories import git
from support.road import COMPUTER_CAPABILITIES
from support.service import META, TOKEN, Http, Service, message_of, modern_headers, rpc, serving

CANARY = "CANARY-OUT-7f3a"
"""What no answer may ever contain: the text of the files outside."""

_EXEC = ["command:run", "process:manage", "package:run", "history:read", "fs:read", "fs:write"]
_PLAIN = ["npm *", "node *", "git *", "echo *", "ls *", "cat *", "true", "sleep *", "mysql *"]
_TRUSTED = "sed sort awk tar find rg env xargs man zip tee less vim python3".split()


@dataclass
class Ground:
    """The folders, and the words that stand for them in a case."""

    base: Path

    def __post_init__(self) -> None:
        self.root, self.out, self.mark = self.base / "app", self.base / "out", self.base / "mark"
        self.exec, self.ro, self.codex = self.base / "exec", self.base / "ro", self.base / "codex"
        self.person, self.repo, self.state = self.base / "person", self.base / "repo", self.base / "home"

    @property
    def folders(self) -> list[Path]:
        return [self.root, self.out, self.exec, self.ro, self.codex, self.person, self.repo]

    def lay(self) -> None:
        """Every folder as before the first case; the scopes' own folders stay the same objects."""
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
            for entry in folder.iterdir():
                if entry.is_dir() and not entry.is_symlink():
                    if entry not in (self.root / "sub", self.repo / "sub"):
                        _clear(entry)
                else:
                    entry.unlink(missing_ok=True)
        for folder in (self.root / "sub", self.repo / "sub", Path(f"{self.root}_evil"), Path(f"{self.mark}.d")):
            _clear(folder)
            folder.mkdir()
        (self.root / "sub" / "ro").mkdir()
        (Path(f"{self.root}_evil") / "secret.txt").write_text(CANARY)
        (self.out / "secret.txt").write_text(CANARY + "\n")
        self.mark.unlink(missing_ok=True)

    def words(self) -> dict[str, str]:
        """What each word of a case means; longer words first, as one may begin another."""
        return {
            "$ROOT_evil": f"{self.root}_evil", "$ROOT_RO": f"{self.ro}", "$ROOT_X": f"{self.exec}",
            "$ROOT": f"{self.root}", "$OUT": f"{self.out}", "$MARK": f"{self.mark}", "$STATE": f"{self.state}",
            "$HOME": f"{self.person}", "$OWNER_TOKEN": TOKEN,
        }  # fmt: skip

    def fill(self, value: Any) -> Any:
        """The value with every word replaced."""
        if isinstance(value, str):
            for word, meaning in self.words().items():
                value = value.replace(word, meaning)
            return value
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        return {key: self.fill(item) for key, item in value.items()} if isinstance(value, dict) else value

    def picture(self, path: str) -> str:
        """A digest of everything below a path: names, kinds, contents."""
        place, digest = Path(self.fill(path)), hashlib.sha256()
        for entry in sorted([place, *place.rglob("*")] if place.exists() else []):
            digest.update(f"{entry} {os.path.islink(entry)} ".encode())
            if entry.is_file():
                digest.update(entry.read_bytes())
        return digest.hexdigest()

    def script(self, place: Path | None = None) -> Path:
        """An executable that betrays itself by making the mark."""
        path = (place or self.root) / "x.sh"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {self.mark}\n")
        path.chmod(0o755)
        return path

    def repository(self, at: Path | None = None, **settings: str) -> Path:
        """A repository with one commit and one change not staged, and with hostile settings in its own config."""
        place = at or self.root
        git(place, "init", "-q", "-b", "main")
        git(place, "config", "user.email", "a@example.com")
        git(place, "config", "user.name", "A")
        (place / "a.txt").write_text("one\n")
        git(place, "add", "a.txt")
        git(place, "commit", "-qm", "first")
        (place / "a.txt").write_text("two\n")
        self.script(place)
        for name, value in settings.items():
            git(place, "config", name.replace("__", "."), self.fill(value))
        return place

    def scopes(self) -> list[dict[str, Any]]:
        """The scopes the cases name."""
        app = "fs:read fs:write git:read git:write artifact:read artifact:write history:read".split()
        return [
            _folder("app", self.root, app, deniedPaths=["secret/**"]),
            _folder("subro", self.root / "sub" / "ro", ["fs:read"]),
            _folder("ro", self.ro, ["fs:read"]),
            _folder("exec", self.exec, _EXEC, allowedCommands=_PLAIN, deniedCommands=["rm -rf *", "shutdown *"]),
            _folder("exec2", self.exec, _EXEC, allowedCommands=["true"]),
            _folder("execsh", self.exec, _EXEC, allowedCommands=["sh *"]),
            _folder("execdeny", self.exec, _EXEC, deniedCommands=["rm *", "sudo *", "iptables *"]),
            _folder("execsafe", self.exec, _EXEC, allowedCommands=[f"{name} *" for name in _TRUSTED]),
            _folder("execrf", self.exec, _EXEC, allowedCommands=["rm *"], deniedCommands=["rm -rf *"]),
            {"id": "execnopolicy", "type": "folder", "roots": [str(self.exec)], "capabilities": _EXEC},
            _folder("gitsub", self.repo / "sub", [*app, *_EXEC], allowedCommands=["npm *"]),
            _folder("codex", self.codex, ["codex:run", "fs:read"]),
            _folder("home", self.person, app),
            {"id": "desk", "type": "computer", "capabilities": COMPUTER_CAPABILITIES, "policy": {"confirm": "act"}},
            {"id": "screen", "type": "computer", "capabilities": COMPUTER_CAPABILITIES, "policy": {}},
        ]


def _clear(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        # Some cases dig deeper than a recursive function of Python can follow.
        subprocess.run(["rm", "-rf", "--", str(folder)], check=True)


def _folder(name: str, root: Path, capabilities: list[str], **policy: Any) -> dict[str, Any]:
    return {"id": name, "type": "folder", "roots": [str(root)], "capabilities": capabilities, "policy": policy}


@dataclass
class Answer:
    """What the service said: the exact text, the envelope in it, and how long it took."""

    text: str
    envelope: dict[str, Any]
    took_ms: float

    @property
    def ok(self) -> bool:
        return bool(self.envelope.get("ok"))

    @property
    def code(self) -> str | None:
        return None if self.ok else str(self.envelope["error"]["code"])

    @property
    def data(self) -> dict[str, Any]:
        assert self.ok, self.text
        found: dict[str, Any] = self.envelope["data"]
        return found


@dataclass
class Field:
    """The ground with the running service."""

    ground: Ground
    service: Service
    link: Http

    def call(self, scope: str, op: str, target: Any = None, **parts: Any) -> Answer:
        """One operation through the MCP endpoint, its words filled in."""
        arguments = {"scope": scope, "op": op, "target": target, **parts}
        return self.send(self.ground.fill({name: part for name, part in arguments.items() if part is not None}))

    def send(self, arguments: dict[str, Any]) -> Answer:
        """One `computer_operation` with exactly these arguments."""
        params = {"name": "computer_operation", "arguments": arguments}
        body = rpc(1, "tools/call", {**params, "_meta": META})
        started = time.monotonic()
        _, raw = self.link.send("POST", "/mcp", body, modern_headers("tools/call", params))
        took = (time.monotonic() - started) * 1000
        message = message_of(raw)
        assert "result" in message, message
        text = message["result"]["content"][0]["text"]
        return Answer(raw.decode(), json.loads(text), took)

    def stored(self) -> bytes:
        """Every byte of the service's state, and everything its history tells."""
        files = [path.read_bytes() for path in self.ground.state.rglob("*") if path.is_file()]
        views = ["last", "timeline", "failed_replay", "debug_bundle"]
        told = [self.call("exec", f"history.{view}").text.encode() for view in views]
        return b"\n".join([*files, *told, self.call("exec", "process.list").text.encode()])

    def processor_ms(self) -> float:
        """The processor time the service has used so far, which a crowded machine does not change."""
        fields = Path(f"/proc/{self.service.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def memory_peak_mb(self) -> float:
        """The most memory the service ever had resident."""
        status = Path(f"/proc/{self.service.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def battlefield(base: Path, **fields: Any) -> Iterator[Field]:
    """A service whose own environment is already hostile: git's variables, a `.` first on PATH, no display."""
    ground = Ground(base)
    ground.lay()
    hostile = {
        "HOME": f"{ground.person}", "PATH": f".:{os.environ['PATH']}", "DISPLAY": "", "WAYLAND_DISPLAY": "",
        "GIT_EXTERNAL_DIFF": f"{ground.root}/x.sh", "GIT_DIR": f"{ground.out}/repo/.git", "x": f"$(touch {ground.mark})",
        "NODE_OPTIONS": "", "CANARY_IN_ENVIRONMENT": CANARY,
    }  # fmt: skip
    with serving(base, token=TOKEN, env=hostile, scopes=ground.scopes(), **fields) as service:
        link = service.http()
        try:
            yield Field(ground, service, link)
        finally:
            link.close()
            ground.lay()


def children_of(pid: int) -> list[int]:
    """The processes below a process, at any depth."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = [tuple(map(int, line.split())) for line in listed.splitlines()]
    found, fresh = [], [pid]
    while fresh:
        fresh = [child for child, parent in parents if parent in fresh]
        found += fresh
    return found


def told_to_the_owner(service: Service) -> list[dict[str, Any]]:
    """What happened lately, the newest first, as the owner reads it at the computer."""
    done = command(service.home, "history", "--limit", "200", "--json")
    assert done.returncode == 0, done.stderr
    events: list[dict[str, Any]] = json.loads(done.stdout)["events"]
    return events
