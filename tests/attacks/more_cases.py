"""Attacks on files, commands and artifacts that the other tables do not have: neighbours of known ones, by other verbs."""

import io
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
    Case("PATH-052", "app", "file.read", "CON", ok=False, max_ms=1000),
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

MORE_CASES = [*FLOODS, *PATHS, *COMMANDS, *ARTIFACTS]
