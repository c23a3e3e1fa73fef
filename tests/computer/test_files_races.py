"""Names swapped under a request: nothing outside is ever read, listed or written."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.local.portable.openat2 import openat2_works
from support.road import Road

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not openat2_works(), reason="swapping names needs renameat2, which is Linux's"),
]

CANARY = "CANARY-OUT-7f3a"


SWAP = """
import os, sys, threading
from computer_linker.computer.local.portable.openat2 import rename
folder = os.open(sys.argv[1], os.O_PATH)
is_over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
print("swapping", flush=True)
while not is_over.is_set():
    try:
        rename(folder, sys.argv[2], folder, sys.argv[3], flags=2)  # RENAME_EXCHANGE
    except FileNotFoundError:
        continue
"""


@contextmanager
def swapping(folder: Path, one: str, other: str) -> Iterator[None]:
    """Exchange two names as fast as the kernel can, in a process of its own, until the body ends."""
    words = [sys.executable, "-c", SWAP, str(folder), one, other]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == b"swapping\n"
        try:
            yield
        finally:
            child.stdin.close()
            child.wait(timeout=30)


def furnish(tmp_path: Path, root: Path) -> Path:
    out = tmp_path / "out"
    out.mkdir()
    (out / "secret.txt").write_text(CANARY)
    (out / "f.txt").write_text("old\n")
    (root / "d").mkdir()
    (root / "d" / "secret.txt").write_text("inside")
    (root / "d" / "f.txt").write_text("old\n")
    (root / "e").symlink_to(out)
    (root / "file").write_text("inside")
    (root / "link").symlink_to(out / "secret.txt")
    return out


DIFF = "--- a/d/f.txt\n+++ b/d/f.txt\n@@ -1 +1 @@\n-old\n+pwn\n"
CASES: list[tuple[str, str, str, str | None, dict[str, Any]]] = [
    ("d", "e", "file.read", "d/secret.txt", {}),
    ("file", "link", "file.read", "file", {}),
    ("d", "e", "file.stat", "d/secret.txt", {"options": {"hash": True}}),
    ("d", "e", "file.tree", ".", {"options": {"maxDepth": 10}}),
    ("d", "e", "file.list", "d", {}),
    ("d", "e", "file.write", "d/f.txt", {"input": {"content": "pwn"}}),
    ("file", "link", "file.write", "file", {"input": {"content": "pwn"}}),
    ("d", "e", "file.create", "d/new.txt", {"input": {"content": "pwn"}}),
    ("d", "e", "file.mkdir", "d/made", {}),
    ("d", "e", "file.patch", None, {"input": {"patch": DIFF}}),
    ("d", "e", "file.delete", "d/f.txt", {}),
    ("d", "e", "file.delete", "d", {"options": {"recursive": True}}),
    ("d", "e", "file.move", "file", {"input": {"destination": "d/moved"}}),
    ("d", "e", "file.copy", "d", {"input": {"destination": "copied"}}),
]


async def race(tmp_path: Path, case: tuple[str, str, str, str | None, dict[str, Any]], rounds: int) -> None:
    one, other, op, target, parts = case
    async with Road.open(tmp_path) as road:
        out = furnish(tmp_path, road.root)
        with swapping(road.root, one, other):
            for _ in range(rounds):
                envelope = await road.call(op, target, **parts)
                shown = json.dumps(envelope)
                assert CANARY not in shown
                if op in ("file.tree", "file.list") and envelope["ok"]:
                    # The outside folder has the same names; its files' sizes tell the two apart.
                    assert f'"size": {len(CANARY)}' not in shown
                if op in ("file.delete", "file.move") and envelope["ok"]:
                    break
        assert sorted(path.name for path in out.iterdir()) == ["f.txt", "secret.txt"]
        assert (out / "secret.txt").read_text() == CANARY and (out / "f.txt").read_text() == "old\n"
        copied = road.root / "copied" / "secret.txt"
        assert not copied.exists() or copied.read_text() == "inside"


@pytest.mark.parametrize("case", CASES, ids=[f"{case[2]} {case[3]}" for case in CASES])
async def test_swapped_names_never_lead_outside(
    tmp_path: Path, case: tuple[str, str, str, str | None, dict[str, Any]]
) -> None:
    await race(tmp_path, case, 60)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", CASES, ids=[f"{case[2]} {case[3]}" for case in CASES])
async def test_swapped_names_never_lead_outside_however_long(
    tmp_path: Path, case: tuple[str, str, str, str | None, dict[str, Any]]
) -> None:
    await race(tmp_path, case, 20_000)
