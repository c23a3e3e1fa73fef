"""The stage the tools play on: in this process, or in another one that is reached over a link."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.far import Far, far_process, reached
from support.stage import FarStage, NearStage, Stage


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    with far_process(tmp_path_factory.mktemp("far")) as far:
        yield far


@pytest.fixture(params=["simulated", "remote"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    if request.param == "simulated":
        yield NearStage()
        return
    far: Far = request.getfixturevalue("far")
    far.ask("reset")
    async with reached(far, tmp_path) as computer:
        yield FarStage(far, computer)
