"""Fixtures every test may use, and which tests are long."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
# Compiled modules are kept, whatever PYTHONDONTWRITEBYTECODE says: without them every worker rewrites every test file, and
# every service that a test starts compiles the source anew. The variable itself stays for the commands that tests run.
sys.dont_write_bytecode = False
# The keys of test machines never go to the keyring of the person who runs the tests.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

from support.long_tests import COLLECTED, fitting, long_patterns  # noqa: E402
from support.road import Road  # noqa: E402

# How fast examples are made and tried depends on the machine, and says nothing of the code. Which ones are tried depends on
# the code alone, so that a run says the same twice; `make soak` draws new ones each time.
_QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("any machine", _QUIET, derandomize=True)
settings.register_profile("soak", _QUIET)
settings.load_profile("any machine")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    """The road with one folder scope, `app`."""
    async with Road.open(tmp_path) as opened:
        yield opened


_SLOW_FILES = (
    "windows/test_suites.py", "macos/test_suites.py", "operations/view/test_many_commands.py", "platform/test_honesty.py",
    "windows", "operations/browser", "platform/atspi/test_session_over_mcp.py", "service/install", "tunnels", "peer", "fleet", "clients",
    "conformance", "approvals", "providers/browser", "service", "operations/codex", "platform", "bridge",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the long tests, and begin with slow files, so that no worker is left with one of them at the end."""
    long = fitting(long_patterns())
    for item in items:
        if long.match(name_of(item)):
            item.add_marker(pytest.mark.long)
    config.stash[COLLECTED] = [
        (name_of(item), min({mark.name for mark in item.iter_markers()} & {"long", "soak"}, default="short"))
        for item in items
    ]

    def rank(item: pytest.Item) -> int:
        name = name_of(item)
        return next((number for number, slow in enumerate(_SLOW_FILES) if name.startswith(slow)), len(_SLOW_FILES))

    items.sort(key=rank)


def name_of(item: pytest.Item) -> str:
    """A test's file below `tests`, its name and its parameters."""
    return item.nodeid.removeprefix("tests/")
