"""Names swapped in a tight loop while requests run: what lies outside is neither told nor changed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attacks.ground import CANARY, Field, battlefield

SECONDS = 0.6
_SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
first, second = map(os.fsencode, sys.argv[1:])
print("ready", flush=True)
while True:
    if libc.renameat2(-100, first, -100, second, 2):
        raise OSError(ctypes.get_errno(), "renameat2")
"""


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with battlefield(tmp_path_factory.mktemp("race")) as found:
        yield found


@contextmanager
def swapping(first: Path, second: Path) -> Iterator[None]:
    """Another process exchanges the two names without rest."""
    child = subprocess.Popen([sys.executable, "-c", _SWAP, str(first), str(second)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def folders(field: Field) -> tuple[Path, Path]:
    """A folder inside, and a link to the outside one."""
    field.ground.lay()
    inside, link = field.ground.root / "d", field.ground.root / "e"
    inside.mkdir()
    for name in ("secret.txt", "f.txt"):
        (inside / name).write_text("old\n")
    (field.ground.out / "f.txt").write_text("old\n")
    (field.ground.out / "outside-name.txt").write_text("")
    os.symlink(field.ground.out, link)
    return inside, link


REQUESTS = {
    "RACE-002": ("file.read", "d/secret.txt", {}, {}),
    "RACE-007": ("file.tree", ".", {}, {"maxDepth": 10}),
    "RACE-009": ("file.patch", None, {"diff": "--- a/d/f.txt\n+++ b/d/f.txt\n@@ -1 +1 @@\n-old\n+pwn\n"}, {}),
    "write": ("file.write", "d/f.txt", {"content": "pwn"}, {}),
    "create": ("file.create", "d/made.txt", {"content": "pwn"}, {}),
    "delete": ("file.delete", "d/f.txt", {}, {}),
    "move": ("file.move", "d/f.txt", {"destination": "d/g.txt"}, {}),
    "copy": ("file.copy", "d", {"destination": "copied"}, {}),
    "search": ("file.search", ".", {"query": "CANARY"}, {}),
    "find": ("file.find", ".", {"pattern": "**/*"}, {}),
    "list": ("file.list", "d", {}, {}),
    "symbols": ("code.context", ".", {}, {}),
    "RACE-010": ("artifact.ingest", None, {"path": "d/secret.txt", "kind": "console_logs"}, {}),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_folder_swapped_for_a_link_out_gives_and_takes_nothing(field: Field, case: str) -> None:
    op, target, given, options = REQUESTS[case]
    inside, link = folders(field)
    before = field.ground.picture("$OUT")
    end = time.monotonic() + SECONDS
    with swapping(inside, link):
        while time.monotonic() < end:
            answer = field.call("app", op, target, input=given, options=options)
            assert CANARY not in answer.text
            assert "outside-name.txt" not in answer.text
            if answer.ok and op == "artifact.ingest":
                kept = field.call("app", "artifact.read", answer.data["artifacts"][0]["id"])
                assert CANARY not in kept.text
    assert field.ground.picture("$OUT") == before
    assert not (field.ground.root / "copied" / "outside-name.txt").exists()
