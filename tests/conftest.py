"""Fixtures every test may use."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support.road import Road


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    """The road with one folder scope, `app`."""
    async with Road.open(tmp_path) as opened:
        yield opened
