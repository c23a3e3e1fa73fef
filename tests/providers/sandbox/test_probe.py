"""The probe of the boundary: undisturbed by another one, tried again after a failure, and clear about what is missing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from computer_linker.providers.sandbox.boundary import Boundary
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]


async def test_probes_beside_each_other_do_not_disturb_each_other(tmp_path: Path) -> None:
    found: list[Boundary] = []

    async def probe(sandbox: Sandbox) -> None:
        found.append(await sandbox.probe())
        await sandbox.aclose()

    async with Road.open(tmp_path, [folder_scope(tmp_path / "root")]) as road:
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(probe, Sandbox(road.app.computer, road.home, kinds=("bubblewrap",)))
        left = [path.name for path in road.home.iterdir() if path.name.startswith("sandbox-probe")]
    assert [(each.kind, each.holds, each.protected) for each in found] == [("bubblewrap", True, True)] * 6
    assert left == []


async def test_a_failed_probe_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("bwrap")
    assert real is not None
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.symlink_to("/usr/bin/true")
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root")]) as road:
        sandbox = Sandbox(road.app.computer, road.home, kinds=("bubblewrap",))
        assert not (await sandbox.probe()).holds
        fake.unlink()
        fake.symlink_to(real)
        # A while has not passed yet.
        assert not (await sandbox.probe()).holds
        sandbox.probe_again_s = 0.0
        assert (await sandbox.probe()).holds
        await sandbox.aclose()


def test_without_user_namespaces_landlock_is_used_and_the_reason_said(tmp_path: Path) -> None:
    environ = {**os.environ, "COMPUTER_LINKER_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    check = f"exec {sys.executable} -m computer_linker sandbox check --json"
    argv = ["unshare", "-Ur", "sh", "-c", f"echo 0 > /proc/sys/user/max_user_namespaces || exit 77; {check}"]
    ran = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode == 77 or not ran.stdout:
        pytest.skip(f"user namespaces cannot be taken away here: {ran.stderr[:200]}")
    told = json.loads(ran.stdout)
    bubblewrap = next(entry for entry in told["boundaries"] if entry["kind"] == "bubblewrap")
    assert not bubblewrap["holds"] and "user namespace" in bubblewrap["detail"]
    assert told["used"] in ("landlock", "none")
