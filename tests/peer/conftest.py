"""Two computers, paired or not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.pair import Pair, open_pair


@pytest.fixture
async def unpaired(tmp_path: Path) -> AsyncIterator[Pair]:
    """A desk, and a laptop that listens."""
    async with open_pair(tmp_path) as made:
        yield made


@pytest.fixture
async def pair(unpaired: Pair) -> Pair:
    """A desk that may use the laptop's folder in every way."""
    await unpaired.paired()
    return unpaired


@pytest.fixture
async def reading_pair(unpaired: Pair) -> Pair:
    """A desk that may only read there."""
    await unpaired.paired("app:fs:read")
    return unpaired
