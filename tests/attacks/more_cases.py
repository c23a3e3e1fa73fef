"""Attacks on files, commands and artifacts that the other tables do not have: neighbours of known ones, by other verbs."""

import io
import os
import zipfile
from collections.abc import Callable
from typing import Any

from attacks.case import OUTSIDE, Case
from attacks.ground import CANARY, Answer, Field, Ground

SECRET = ("path_out_of_scope", "permission_denied", "invalid_request", "not_found")


def _zip(name: str, members: dict[str, bytes]) -> Callable[[Ground], object]:
    def make(ground: Ground) -> None:
        with zipfile.ZipFile(ground.root / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for member, content in members.items():
                archive.writestr(member, content)

    return make


def _bomb(ground: Ground) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("zeros", bytes(50 << 20))
    _zip("42.zip", {f"{number}.zip": inner.getvalue() for number in range(40)})(ground)


def _large_files(ground: Ground) -> None:
    """Sparse, so that they cost the disk nothing; read whole, each is sixty megabytes."""
    with (ground.root / "big.log").open("wb") as file:
        file.truncate(60 << 20)


def _nothing_kept(field: Field, answer: Answer) -> None:
    assert field.call("app", "artifact.list").data["artifacts"] == []


def _ingest(name: str, given: dict[str, Any], **more: Any) -> Case:
    return Case(name, "app", "artifact.ingest", None, given, hides=[CANARY], unchanged=["$OUT"], **more)


PATHS = [
    Case("PATH-049", "app", "file.read", "\\\\?\\C:\\Windows\\win.ini", ok=False, codes=OUTSIDE),
    Case("PATH-052", "app", "file.read", "CON", ok=False, max_ms=30_000),
    Case("PATH-054", "app", "file.read", ".env. .", ok=False, codes=["invalid_request", "permission_denied"],
         hides=[CANARY], setup=lambda ground: (ground.root / ".env").write_text(CANARY)),
]  # fmt: skip

COMMANDS = [
    Case("CMD-107", "execsafe", "command.run", ".", {"command": ["tee", "$MARK"], "stdin": "pwn"}, absent=["$MARK"],
         unchanged=["$OUT"]),
    Case("CMD-141", "exec", "command.run", ".", {"command": "echo a^&calc"}, ok=False),
]  # fmt: skip

ARTIFACTS = [
    _ingest("ART-031", {"kind": "browser_trace", "path": "$ROOT/t.zip"}, absent=["$OUT/pwn"],
            setup=_zip("t.zip", {"../../out/pwn": b"x"})),
    _ingest("ART-031-relative", {"kind": "browser_trace", "path": "t.zip"}, ok=True, absent=["$OUT/pwn"],
            setup=_zip("t.zip", {"../out/pwn": b"x", "../../out/pwn": b"x"})),
    _ingest("ART-032", {"kind": "browser_trace", "path": "42.zip"}, ok=True, max_growth_mb=64, setup=_bomb),
]  # fmt: skip

FLOODS = [
    _ingest("ART-many-large", {"manifest": {"artifacts": [{"kind": "document", "path": "big.log"}] * 200}}, ok=False,
            codes=["limit_exceeded"], max_growth_mb=300, setup=_large_files, after=_nothing_kept),
    _ingest("ART-one-bad", {"manifest": {"artifacts": [{"kind": "console_logs", "text": "fine"},
            {"kind": "screenshot", "text": "no picture"}]}}, ok=False, codes=["invalid_request"], after=_nothing_kept),
]  # fmt: skip


def _pipe(*names: str, repository: bool = False) -> Callable[[Ground], object]:
    """Pipes where programs expect files; whoever opens one to read waits for ever."""

    def make(ground: Ground) -> None:
        if repository:
            ground.repository()
        (ground.root / "zork.py").write_text("def zork(): pass\n")
        (ground.root / "sub" / "deep").mkdir(parents=True)
        for name in names:
            (ground.root / name).unlink(missing_ok=True)
            os.mkfifo(ground.root / name)

    return make


def _giant(name: str) -> Callable[[Ground], object]:
    def make(ground: Ground) -> None:
        (ground.root / "zork.py").write_text("def zork(): pass\n")
        with (ground.root / name).open("wb") as file:
            file.truncate(3 << 30)

    return make


def _second_name(ground: Ground) -> None:
    (ground.root / ".env").write_text("def zork(): pass\n")
    os.link(ground.root / ".env", ground.root / "plain.py")


def _finds_zork(field: Field, answer: Answer) -> None:
    assert "zork.py" in answer.text


WAITS_MS = 15_000
"""Generous for a busy machine; each of these held its caller up for a minute, and eight of them everybody else."""
_FIND = {"pattern": "**"}

WAITING = [
    Case("SPEC-pipe-find", "app", "file.find", ".", _FIND, ok=True, setup=_pipe(".gitignore"), max_ms=WAITS_MS,
         after=_finds_zork),
    Case("SPEC-pipe-deep", "app", "file.find", ".", _FIND, ok=True, setup=_pipe("sub/deep/.gitignore"), max_ms=WAITS_MS,
         after=_finds_zork),
    Case("SPEC-pipe-search", "app", "file.search", ".", {"query": "zork"}, ok=True, setup=_pipe(".gitignore", "x.py"),
         max_ms=WAITS_MS, after=_finds_zork),
    Case("SPEC-pipe-symbols", "app", "code.search_symbols", ".", {"query": "zork"}, ok=True, max_ms=WAITS_MS,
         setup=_pipe(".gitignore", "x.py"), after=_finds_zork),
    Case("SPEC-pipe-context", "app", "code.context", ".", ok=True, max_ms=WAITS_MS, after=_finds_zork,
         setup=_pipe("AGENTS.md", "package.json", "Makefile", "pyproject.toml", ".gitignore")),
    *(Case(f"SPEC-pipe-git-{name.rpartition('/')[2]}", "app", "git.status", ".", ok=False, max_ms=WAITS_MS,
           codes=["execution_failed"], setup=_pipe(name, repository=True))
      for name in (".git/index", ".git/config", ".gitignore")),
    Case("RES-giant-ignore-find", "app", "file.find", ".", _FIND, ok=True, setup=_giant(".gitignore"), max_ms=WAITS_MS,
         max_growth_mb=64, after=_finds_zork),
    Case("RES-giant-ignore-symbols", "app", "code.search_symbols", ".", {"query": "zork"}, ok=True, max_ms=WAITS_MS,
         setup=_giant(".gitignore"), max_growth_mb=64, after=_finds_zork),
]  # fmt: skip


def _warned(field: Field, answer: Answer) -> None:
    assert "hardlink" in str(answer.envelope["warnings"])


def _outside(ground: Ground) -> None:
    os.link(ground.out / "secret.txt", ground.root / "hl")


HARD = [
    Case("HARD-attach", "app", "artifact.attach", "hl", ok=True, setup=_outside, after=_warned),
    Case("HARD-ingest", "app", "artifact.ingest", None, {"path": "hl"}, ok=True, setup=_outside, after=_warned),
    Case("HARD-read-many", "app", "file.read_many", None, {"paths": ["hl"]}, ok=True, setup=_outside, after=_warned),
    Case("HARD-append", "app", "file.write", "hl", {"content": "pwn"}, {"append": True}, ok=True, setup=_outside,
         unchanged=["$OUT"]),
    Case("HARD-outline", "app", "code.outline", "plain.py", ok=False, codes=["permission_denied"], hides=["zork"],
         setup=_second_name),
    Case("HARD-symbols", "app", "code.search_symbols", ".", {"query": "zork"}, ok=True, setup=_second_name,
         hides=["plain.py"]),
]  # fmt: skip

# The floods come first: they look whether anything at all was kept.
MORE_CASES = [*FLOODS, *WAITING, *HARD, *PATHS, *COMMANDS, *ARTIFACTS]
