"""Every call that touches the history fails once, and every one is once the last: the store stays valid and complete."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from computer_linker.audit.store import AuditStore
from computer_linker.audit.views import answer
from support.events import event

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to build the fault injector"),
]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def injector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", built, HERE / "faults.c", "-ldl"], check=True, timeout=240)
    return built


def live(injector: Path, folder: Path, at: int, how: str) -> tuple[int, list[list[str]]]:
    """One life with a fault at its `at`-th call; the exit code and what it told."""
    faults = {"FAULT_AT": str(at), "FAULT_HOW": how, "FAULT_IN": str(folder), "LD_PRELOAD": str(injector)}
    child = subprocess.run(
        [sys.executable, HERE / "history_steps.py", folder],
        env={**os.environ, **faults},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert child.returncode in (0, -9), child.stderr
    return child.returncode, [line.split(" ", 1) for line in child.stdout.splitlines()]


async def check(folder: Path, told: list[list[str]]) -> None:
    """The store opens, verifies, has all that was acknowledged, and goes on."""
    store = AuditStore(folder)
    await store.record(event("file.list", "afterwards"))
    verified = await answer(store, view="verify", visible=None)
    assert verified["valid"], verified
    events = {
        one["operationId"]: one for one in (await answer(store, view="timeline", visible=None, limit=500))["events"]
    }
    for kind, operation_id in (line for line in told if len(line) == 2 and line[0] in ("intent", "outcome")):
        assert operation_id in events
        assert kind == "intent" or events[operation_id]["outcome"] == "done"
    assert any(one["target"] == "afterwards" for one in events.values())
    await store.aclose()


@pytest.mark.parametrize("how", ["kill", str(errno.ENOSPC), str(errno.EIO)])
@pytest.mark.parametrize("every", [29, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
async def test_a_fault_at_any_call_leaves_a_valid_store(tmp_path: Path, injector: Path, how: str, every: int) -> None:
    at, reached = 1, True
    while reached:
        folder = tmp_path / f"life{at}"
        code, told = live(injector, folder, at, how)
        if not any(line[0] == "stopped" for line in told):
            await check(folder, told)
        # A life that neither died nor missed anything had fewer calls than this.
        whole = [line[0] for line in told].count("outcome") == 12 and len(told) == 18
        reached = code == -9 or not whole or at < 100
        shutil.rmtree(folder, ignore_errors=True)
        at += every
        assert at < 2000
