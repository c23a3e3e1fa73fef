"""Backends are what they plainly say they are. `ghost` exists on macOS only: a stand-in prints its documented answers."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from computer_linker.providers.backends.found import (
    Backend,
    Preference,
    choose,
    discover,
    matrix,
    process_health,
    setup_state,
)
from support.agents import road_with
from support.road import Road, computer_scope, folder_scope
from support.service import is_alive, wait_for

pytestmark = pytest.mark.anyio


def programs(folder: Path, **scripts: str) -> Callable[[str], str | None]:
    """A folder of stand-in programs, and how to find them."""
    for name, body in scripts.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return lambda name: str(folder / name) if (folder / name).exists() else None


@pytest.mark.parametrize(
    ("status", "doctor", "state", "available"),
    [
        ("echo 'Status: ready'", "echo '[ok] Processes: 1'", "ready", True),
        ("echo 'Run ghost setup first'", "echo '[ok] Processes: 1'", "needs_setup", False),
        ("echo 'Accessibility not granted'", "true", "needs_setup", False),
        ("echo 'Status: ready'", "echo '[FAIL] Processes: 3'", "stale", False),
        ("echo 'Status: ready'", "echo 'Processes: 4'", "stale", False),
        ("echo 'all good, trust me'", "true", "unknown", False),
        ("exit 3", "exit 3", "unknown", False),
        ("echo 'status: readying'", "true", "unknown", False),
    ],
)
async def test_ghost_is_ready_only_when_it_says_so(
    road: Road, tmp_path: Path, status: str, doctor: str, state: str, available: bool
) -> None:
    find = programs(tmp_path, ghost=f'case "$1" in status) {status};; doctor) {doctor};; esac')
    ghost = (await discover(road.app.computer, find))[0]
    assert (ghost.state, ghost.available) == (state, available)


async def test_a_program_that_hangs_forks_or_rambles_is_ended(road: Road, tmp_path: Path) -> None:
    marker = tmp_path / "child"
    find = programs(
        tmp_path,
        agent_browser=f"setsid sleep 300 & echo $! > {marker}; sleep 300",
        peekaboo="yes rambling",
        cua_driver="echo cua-driver 1.2.3",
    )
    started = time.monotonic()
    _, browser, cua, peekaboo = await discover(road.app.computer, find)
    assert time.monotonic() - started < 60
    assert (browser.state, browser.available) == ("unknown", False)
    assert (peekaboo.state, peekaboo.available) == ("unknown", False)
    assert (cua.state, cua.detail) == ("installed", "version 1.2.3")
    left = int(marker.read_text())
    wait_for(lambda: not is_alive(left))


def test_the_order_of_choice_is_artifact_policy_available_none() -> None:
    there = [Backend("a", "cli", True, "installed", "", ("screenshot",)), Backend("b", "cli", True, "installed", "")]
    assert choose(there, Preference(latest="b", preferred="a")) == ("b", "artifact")
    assert choose(there, Preference(latest="gone", preferred="b")) == ("b", "policy")
    away = Backend("c", "cli", False, "missing", "")
    assert choose([*there, away], Preference(latest="c", preferred="b")) == ("c", "artifact"), (
        "also while it is not ready"
    )
    assert choose(there) == ("a", "available")
    assert choose([]) == (None, "none")
    local = Backend("local", "built-in", True, "ready", "", ("screenshot",))
    assert matrix(there, local)["screenshot"] == {
        "backends": ["a"], "localFallback": True, "use": "a", "source": "available",
    }  # fmt: skip
    assert matrix([], local)["screenshot"]["use"] == "local"
    assert matrix([], local, Preference(allows_fallback=False))["screenshot"] == {
        "backends": [], "localFallback": False, "use": None, "source": "none",
    }  # fmt: skip
    assert matrix(there, local)["console_logs"]["use"] is None


def test_unreadable_answers_are_unknown() -> None:
    assert setup_state(None) == "unknown"
    assert process_health(None) == "unknown"
    assert process_health("nothing") == "unknown"
    assert process_health("[ok] Processes: fine") == "healthy"


async def test_the_operation_answers_the_matrix(road: Road) -> None:
    data = await road.data("backend.status")
    assert [item["name"] for item in data["backends"]] == ["ghost-os", "agent-browser", "cua-driver", "peekaboo"]
    assert set(data["matrix"]) == {
        "screenshot",
        "video_recording",
        "browser_trace",
        "browser_verification",
        "console_logs",
    }


async def test_a_program_that_a_scope_could_have_written_is_never_asked(tmp_path: Path) -> None:
    root, tools = tmp_path / "root", tmp_path / "tools"
    marker = tmp_path / "ran"
    for folder in (root / "bin", tools):
        folder.mkdir(parents=True)
    programs(root / "bin", cua_driver=f"touch {marker}; echo cua-driver 9.9.9")
    programs(tools, peekaboo="echo peekaboo 3.0.1", ghost="echo 'Status: ready'")
    environ = {"PATH": f"{root}/bin:{tools}:/usr/bin:/bin"}
    scope = folder_scope(root, "app", preferredBackend="peekaboo", allowLocalFallback=False)
    async with road_with(tmp_path, environ, [scope, computer_scope("desk")]) as road:
        for name in ("app", "desk"):
            data = await road.data("backend.status", scope=name)
            found = {one["name"]: one for one in data["backends"]}
            assert (found["cua-driver"]["available"], found["peekaboo"]["detail"]) == (False, "version 3.0.1")
            assert (found["ghost-os"]["state"], found["ghost-os"]["processHealth"]) == ("ready", "unknown")
            assert data["preferred"] == (
                {"name": "peekaboo", "source": "policy"}
                if name == "app"
                else {"name": "ghost-os", "source": "available"}
            )
    assert not marker.exists()
