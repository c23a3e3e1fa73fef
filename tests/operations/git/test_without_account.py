"""git.commit by a service whose user id has no account, as in many containers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.repositories import git, repository

STRANGE = 54321
_SCRIPT = """
import asyncio, json, os, pathlib, sys
sys.path.insert(0, sys.argv[2])
from support.road import Road

async def main():
    assert os.getuid() == int(sys.argv[3])
    async with Road.open(pathlib.Path(sys.argv[1])) as road:
        await road.data("git.stage", input={"paths": ["a.txt"]})
        print(json.dumps(await road.call("git.commit", input={"message": "by nobody"})))

asyncio.run(main())
"""


def committed(place: Path) -> dict[str, Any]:
    """The answer to git.commit by a service that runs as a user id without an account."""
    # In a user namespace the tests' own user has another id, and still owns what it owned.
    who = ["unshare", "--user", f"--map-user={STRANGE}", f"--map-group={STRANGE}"]
    if shutil.which("unshare") is None or subprocess.run([*who, "true"], capture_output=True, check=False).returncode:
        pytest.skip("another user id needs user namespaces and unshare")
    tests = str(Path(__file__).parents[2])
    argv = [*who, sys.executable, "-c", _SCRIPT, str(place), tests, str(STRANGE)]
    env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("strange")
    repository(place / "root")
    return place


def test_an_identity_in_the_repository_is_enough(place: Path) -> None:
    git(place / "root", "config", "user.name", "Grace")
    git(place / "root", "config", "user.email", "grace@example.org")
    answer = committed(place)
    assert answer["ok"], answer
    assert git(place / "root", "log", "-1", "--format=%an <%ae> %cn") == "Grace <grace@example.org> Grace"


@pytest.mark.parametrize("half", [None, ("user.name", "Grace"), ("user.email", "grace@example.org")])
def test_without_one_it_says_what_to_set_and_commits_nothing(place: Path, half: tuple[str, str] | None) -> None:
    if half is not None:
        git(place / "root", "config", *half)
    before = (place / "root" / ".git" / "refs" / "heads" / "main").read_bytes()
    error = committed(place)["error"]
    assert error["code"] == "conflict"
    assert "user.name" in error["message"] and "user.email" in error["message"]
    assert (place / "root" / ".git" / "refs" / "heads" / "main").read_bytes() == before
