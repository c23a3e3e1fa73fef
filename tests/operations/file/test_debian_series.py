"""Debian's own patch series, applied by file.patch and by `git apply`: byte-equal, but for named reasons.

The source packages are fetched by name, once; nothing of them is shipped. A patch that `git apply` refuses is applied by `patch`, so
that the series goes on, and file.patch has to refuse it too or to make of it what `patch` makes.
"""

import base64
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.debian_sources import source
from support.road import Road

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]
PACKAGES = "less unzip".split()
OTHERS = (
    "bash bzip2 cpio cron cups curl exim4 file groff grub2 inetutils libtool net-tools nfs-utils openssh ppp procps rsync "
    "screen shadow sudo tar tcpdump"
).split()
SEVERAL = "stands in several places, so none is chosen"
EMPTY = "changes nothing"
NEW_ALONE = "only new files, in a folder that git apply takes for a prefix and file.patch for a folder"
LARGE = "a file or a diff is larger than file.patch takes"
FUZZ = "git apply refuses what patch makes fit, and so does file.patch"
LIKE_PATCH = "git apply refuses it, and file.patch makes what patch makes"


def unpacked(name: str, at: Path) -> list[bytes]:
    """The upstream source of a package at a place, and its patches in order."""
    origin, changes = source(name)
    at.mkdir(parents=True)
    subprocess.run(["tar", "xf", origin, "-C", at, "--strip-components=1", "--no-same-owner"], check=True)
    subprocess.run(["tar", "xf", changes, "-C", at.parent, "--no-same-owner"], check=True)
    patches = at.parent / "debian" / "patches"
    named = [line.split("#")[0].split() for line in (patches / "series").read_text().splitlines()]
    return [(patches / words[0]).read_bytes() for words in named if len(words) == 1]


def state_of(place: Path, paths: list[str] | None = None) -> dict[str, tuple[int, bytes]]:
    """Each file, or each of these, with whether it is executable, and its content."""
    found = {}
    for path in sorted(place.rglob("*")) if paths is None else [place / name for name in paths]:
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            found[str(path.relative_to(place))] = (path.stat().st_mode & 0o100, path.read_bytes())
    return found


def are_equal(ours: Path, theirs: Path, data: dict[str, Any]) -> bool:
    """Whether the files that the answer names are the same in both; the others are compared once, when the series ends."""
    names = [file["path"].removeprefix("root:ours/") for file in data["files"]]
    return state_of(ours, names) == state_of(theirs, names)


def by_git(place: Path, diff: bytes) -> bool:
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CEILING_DIRECTORIES": str(place.parent)}
    argv = ["git", "apply", "--whitespace=nowarn", "-"]
    return subprocess.run(argv, input=diff, cwd=place, env=env, capture_output=True).returncode == 0


def by_patch(place: Path, diff: bytes) -> bool:
    argv = ["patch", "-p1", "-s", "-f", "--no-backup-if-mismatch"]
    return subprocess.run(argv, input=diff, cwd=place, capture_output=True).returncode == 0


def copied(origin: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(origin, to, symlinks=True)


def reason(message: str) -> str:
    """Why file.patch refused what git applied; empty for a reason that is not named here."""
    for words, why in (
        ("more than once", SEVERAL),
        ("several places", SEVERAL),
        ("changes nothing", EMPTY),
        ("too large", LARGE),
        ("protected", "the scope protects the name"),
        ("secret", "the scope closes the name"),
    ):
        if words in message:
            return why
    return ""


def is_new_alone(diff: bytes) -> bool:
    """Every section makes a file, and its name has another folder than git's b/."""
    return all(
        b"/dev/null" in old and not new.startswith((b"+++ b/", b"+++ /dev/null"))
        for old, new in re.findall(rb"^(--- .*)\n(\+\+\+ .*)$", diff, re.MULTILINE)
    )


async def applied(road: Road, ours: Path, theirs: Path, diff: bytes) -> str:
    """What became of one patch in both; `ours` and `theirs` are equal before and after."""
    encoded = base64.b64encode(diff).decode()
    is_git = by_git(theirs, diff)
    answer = await road.call("file.patch", input={"diff": encoded, "encoding": "base64"}, options={"cwd": "ours"})
    is_equal = answer["ok"] and are_equal(ours, theirs, answer["data"])
    if is_git:
        if answer["ok"] and not is_equal and is_new_alone(diff):
            copied(theirs, ours)
            return NEW_ALONE
        if answer["ok"]:
            assert is_equal, (diff[:300], answer)
            return "equal"
        why = reason(answer["error"]["message"])
        assert why, (answer["error"], diff[:600])
        copied(theirs, ours)
        return why
    assert by_patch(theirs, diff)
    if not answer["ok"]:
        copied(theirs, ours)
        return FUZZ
    assert are_equal(ours, theirs, answer["data"]), (diff[:300], answer)
    return LIKE_PATCH


async def compare(tmp_path: Path, name: str) -> None:
    patches = unpacked(name, tmp_path / "theirs")
    (tmp_path / "root").mkdir()
    ours, theirs = tmp_path / "root" / "ours", tmp_path / "theirs"
    copied(theirs, ours)
    outcomes: Counter[str] = Counter()
    async with Road.open(tmp_path) as road:
        for diff in patches:
            outcomes[await applied(road, ours, theirs, diff)] += 1
    print(name, dict(outcomes))
    assert state_of(ours) == state_of(theirs)
    assert outcomes["equal"] >= 0.9 * (len(patches) - outcomes[FUZZ] - outcomes[LIKE_PATCH]) > 0


@pytest.mark.parametrize("name", PACKAGES)
async def test_a_debian_series_applies_as_git_apply_does(tmp_path: Path, name: str) -> None:
    """Issue 19: real series in the tests."""
    await compare(tmp_path, name)


@pytest.mark.parametrize("name", OTHERS)
async def test_so_do_the_others(tmp_path: Path, name: str) -> None:
    await compare(tmp_path, name)
