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
