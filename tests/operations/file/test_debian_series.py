"""Debian's own patch series, applied by file.patch and by `git apply`: byte-equal, but for named reasons.

`make soak` fetches the source packages by name; nothing of them is shipped. A patch that `git apply` refuses is applied by `patch`, so
that the series goes on, and file.patch has to refuse it too or to make of it what `patch` makes.
"""

import base64
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from support.road import Road

pytestmark = [pytest.mark.anyio, pytest.mark.soak, pytest.mark.timeout(3600)]
PACKAGES = (
    "cron rsync openssh curl unzip libtool file cpio shadow screen inetutils mutt procps net-tools sudo tar ncurses bzip2 less "
    "tcpdump xterm gawk lsof grub2 openssl"
).split()
SEVERAL = "stands in several places, so none is chosen"
EMPTY = "changes nothing"
NEW_ALONE = "only new files, in a folder that git apply takes for a prefix and file.patch for a folder"
LARGE = "a file or a diff is larger than file.patch takes"
FUZZ = "git apply refuses what patch makes fit, and so does file.patch"
LIKE_PATCH = "git apply refuses it, and file.patch makes what patch makes"


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages' archives. apt keeps its own state elsewhere for this."""
    place = tmp_path_factory.mktemp("sources")
    (place / "lists" / "partial").mkdir(parents=True)
    (place / "sources.list").write_text(_source_lines())
    settings = {
        "Dir::Etc::sourcelist": place / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": place / "lists",
        "Dir::Cache": place / "cache",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    if subprocess.run(["apt-get", "-qq", *options, "update"], capture_output=True, timeout=300).returncode:
        pytest.skip("Debian's source packages cannot be reached")
    for name in PACKAGES:
        # One that is not there any more is left out; the test asks for a number of patches.
        argv = ["apt-get", "-qq", *options, "source", "--download-only", name]
        subprocess.run(argv, cwd=place, capture_output=True, timeout=300)
    return place


def _source_lines() -> str:
    """The source packages of the archives that this machine takes Debian's packages from."""
    form = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)"
    argv = ["apt-get", "indextargets", "--format", form, "Created-By: Packages", "Origin: Debian"]
    listed = subprocess.run(argv, capture_output=True, text=True, timeout=240)
    return "".join(f"{line}\n" for line in dict.fromkeys(listed.stdout.splitlines()))


def unpacked(archives: Path, name: str, at: Path) -> list[bytes]:
    """The upstream source of a package at a place, and its patches in order."""
    origin = next(archives.glob(f"{name}_*.orig.tar.*[!c]"))
    changes = next(archives.glob(f"{name}_*.debian.tar.*"))
    at.mkdir(parents=True)
    subprocess.run(["tar", "xf", origin, "-C", at, "--strip-components=1", "--no-same-owner"], check=True)
    subprocess.run(["tar", "xf", changes, "-C", at.parent, "--no-same-owner"], check=True)
    patches = at.parent / "debian" / "patches"
    if not (patches / "series").exists():
        return []
    named = [line.split("#")[0].split() for line in (patches / "series").read_text().splitlines()]
    return [(patches / words[0]).read_bytes() for words in named if len(words) == 1]


def state_of(place: Path) -> dict[str, tuple[int, bytes]]:
    """Each file with whether it is executable, and its content."""
    found = {}
    for path in sorted(place.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            found[str(path.relative_to(place))] = (path.stat().st_mode & 0o100, path.read_bytes())
    return found


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
    before_equal = answer["ok"] and state_of(ours) == state_of(theirs)
    if is_git:
        if answer["ok"] and not before_equal and is_new_alone(diff):
            copied(theirs, ours)
            return NEW_ALONE
        if answer["ok"]:
            assert before_equal, (diff[:300], answer)
            return "equal"
        why = reason(answer["error"]["message"])
        assert why, (answer["error"], diff[:600])
        copied(theirs, ours)
        return why
    assert by_patch(theirs, diff)
    if not answer["ok"]:
        copied(theirs, ours)
        return FUZZ
    assert state_of(ours) == state_of(theirs), (diff[:300], answer)
    return LIKE_PATCH


@pytest.mark.parametrize("name", PACKAGES)
async def test_a_debian_series_applies_as_git_apply_does(fetched: Path, tmp_path: Path, name: str) -> None:
    """Issue 19: real series in the tests."""
    if not list(fetched.glob(f"{name}_*.debian.tar.*")):
        pytest.skip("the package's source is not there")
    patches = unpacked(fetched, name, tmp_path / "theirs")
    (tmp_path / "root").mkdir()
    copied(tmp_path / "theirs", tmp_path / "root" / "ours")
    outcomes: Counter[str] = Counter()
    async with Road.open(tmp_path) as road:
        for diff in patches:
            outcomes[await applied(road, tmp_path / "root" / "ours", tmp_path / "theirs", diff)] += 1
    print(name, dict(outcomes))
    assert outcomes["equal"] >= 0.9 * (len(patches) - outcomes[FUZZ] - outcomes[LIKE_PATCH])
