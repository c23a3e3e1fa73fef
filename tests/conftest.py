"""Fixtures every test may use."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# The keys of test machines never go to the keyring of the person who runs the tests.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

from support.road import Road


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    """The road with one folder scope, `app`."""
    async with Road.open(tmp_path) as opened:
        yield opened


_LONG = (
    "operations/browser", "platform/atspi/test_session_over_mcp.py", "service/install", "tunnels", "peer", "fleet", "clients",
    "conformance", "approvals", "providers/browser", "service", "operations/codex", "platform", "bridge",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that at the end no worker is left with one of them while the others have nothing to do."""
    here = Path(__file__).parent

    def rank(item: pytest.Item) -> int:
        name = item.path.relative_to(here).as_posix()
        return next((number for number, long in enumerate(_LONG) if name.startswith(long)), len(_LONG))

    items.sort(key=rank)
