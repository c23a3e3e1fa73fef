"""Two hundred generated diffs of installed packages' files, applied by file.patch and by `git apply`: equal, byte for byte.

The files are those of the packages that the tests run with; the edits are seeded. Each diff is applied to the file it was made from,
and to one that has changed since. Where the two programs decide differently, it is for one of the reasons that are named here.
Series of Debian source packages were compared by the same rule by hand; they are not shipped.
"""

import base64
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from support.road import Road

pytestmark = pytest.mark.anyio
CASES = 200
UNENDED = "the file's last line has no end, of which the diff says nothing"
SEVERAL = "stands in several places, so none is chosen"


def sources() -> list[bytes]:
    """Files of an installed package, of a size that edits can move in."""
    folder = Path(pydantic.__file__).parent
    found = [path.read_bytes() for path in sorted(folder.rglob("*.py"))]
    return [data for data in found if 40 <= data.count(b"\n") <= 1500]


def edited(lines: list[bytes], rng: random.Random, count: int) -> list[bytes]:
    """The lines with some inserted, deleted, repeated or replaced, the first and the last among them."""
    made = list(lines)
    for _ in range(count):
        at = rng.choice([0, len(made), *(rng.randrange(len(made) + 1) for _ in range(6))])
        match rng.randrange(4):
            case 0:
                made[at:at] = [b"inserted %d\n" % rng.randrange(1000)] * rng.randrange(1, 4)
            case 1:
                del made[at : at + rng.randrange(1, 4)]
            case 2:
                made[at:at] = made[max(0, at - 5) : at]
            case _:
                made[at : at + 1] = [b"caf\xe9 replaced\n"]
    if rng.random() < 0.15 and made:
        made[-1] = made[-1].rstrip(b"\n")
    return made


def cases(tmp_path: Path) -> Iterator[tuple[str, bytes, bytes, bytes]]:
    """A name, the file, the diff that changes it, and the file as it is when the diff arrives."""
    rng, known = random.Random(20_261_117), sources()
    for number in range(CASES):
        lines = rng.choice(known).splitlines(keepends=True)
        before, after = tmp_path / "a" / "f.py", tmp_path / "b" / "f.py"
        before.write_bytes(b"".join(lines))
        after.write_bytes(b"".join(edited(lines, rng, rng.randrange(1, 6))))
        argv = ["diff", f"-U{rng.choice([1, 2, 3, 3, 5])}", "a/f.py", "b/f.py"]
        diff = subprocess.run(argv, cwd=tmp_path, capture_output=True).stdout
        arrives = before.read_bytes() if number % 2 else b"".join(edited(lines, rng, 2))
        if diff:
            yield f"{number:03}", before.read_bytes(), diff, arrives


def by_git(folder: Path, diff: bytes) -> bytes | None:
    """What `git apply` makes of f.py in this folder; None when it refuses."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"], input=diff, cwd=folder, env=env, capture_output=True
    )
    return (folder / "f.py").read_bytes() if done.returncode == 0 else None


async def test_generated_diffs_apply_as_git_apply_does(road: Road, tmp_path: Path) -> None:
    """Issue 19, real series in the tests: byte-equal to `git apply` but for named reasons."""
    for name in ("a", "b", "git"):
        (tmp_path / name).mkdir()
    counts: Counter[str] = Counter()
    for number, _, diff, arrives in cases(tmp_path):
        (road.root / "f.py").write_bytes(arrives)
        (tmp_path / "git" / "f.py").write_bytes(arrives)
        wanted = by_git(tmp_path / "git", diff)
        envelope = await _patched(road, diff)
        found = (road.root / "f.py").read_bytes()
        if envelope["ok"] and wanted is not None:
            assert found == wanted, number
            counts["equal"] += 1
        elif not envelope["ok"] and wanted is None:
            assert envelope["error"]["code"] == "conflict" and found == arrives, number
            counts["both refuse"] += 1
        elif envelope["ok"]:
            assert not arrives.endswith(b"\n") and b"\\ No newline" not in diff, number
            counts[UNENDED] += 1
        else:
            assert "more than once" in envelope["error"]["message"] and found == arrives, (number, envelope["error"])
            counts[SEVERAL] += 1
    assert counts["equal"] > CASES * 0.6 and counts["both refuse"] > 0, counts
    assert counts[UNENDED] + counts[SEVERAL] < CASES * 0.15, counts


async def _patched(road: Road, diff: bytes) -> dict[str, Any]:
    return await road.call("file.patch", input={"diff": base64.b64encode(diff).decode(), "encoding": "base64"})
