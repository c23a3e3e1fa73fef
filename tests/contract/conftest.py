"""Every facet's promises are checked on each computer that makes them."""

from collections.abc import AsyncIterator, Iterator

import pytest

from computer_linker.computer.base import Computer
from support.desktop import missing
from support.scene import Scene, SimulatedScene, X11Scene, x11_scene


@pytest.fixture(scope="module")
def x11(tmp_path_factory: pytest.TempPathFactory) -> Iterator[X11Scene]:
    if lacking := missing():
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with x11_scene(tmp_path_factory.mktemp("x11")) as scene:
        yield scene


@pytest.fixture(params=["simulated", pytest.param("x11", marks=pytest.mark.desktop)])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    """A desktop with no windows on it."""
    if request.param == "simulated":
        yield SimulatedScene()
        return
    real: X11Scene = request.getfixturevalue("x11")
    yield real
    await real.computer.aclose()
    for process in list(real.desktop.processes):
        real.desktop.end(process)


@pytest.fixture
def computer(scene: Scene) -> Computer:
    return scene.computer
