"""Every facet's promises are checked on each computer that makes them."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from computer_linker.computer.base import Computer
from support.desktop import missing
from support.far import Far, RemoteScene, far_process, reached
from support.forms import lacking
from support.scene import Scene, SimulatedScene, SwayScene, X11Scene, sway_scene, x11_scene


@pytest.fixture(scope="module")
def x11(tmp_path_factory: pytest.TempPathFactory) -> Iterator[X11Scene]:
    if lacking := missing():
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with x11_scene(tmp_path_factory.mktemp("x11")) as scene:
        yield scene


@pytest.fixture(scope="module")
def sway() -> Iterator[SwayScene]:
    if lack := [*missing("sway", "swaymsg"), *filter(None, [lacking("gtk3")])]:
        pytest.skip(f"not installed: {', '.join(lack)}")
    with sway_scene() as scene:
        yield scene


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    """A simulated computer behind a service in another process."""
    with far_process(tmp_path_factory.mktemp("far")) as far:
        yield far


@pytest.fixture(scope="module")
def far_x11(x11: X11Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    """The X11 desktop behind a service in another process."""
    with far_process(tmp_path_factory.mktemp("far-x11"), "x11", x11.desktop.env) as far:
        yield far


@pytest.fixture(
    params=[
        "simulated",
        "remote",
        pytest.param("x11", marks=pytest.mark.desktop),
        pytest.param("sway", marks=pytest.mark.desktop),
        pytest.param("remote-x11", marks=pytest.mark.desktop),
    ]
)
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    """A desktop with no windows on it."""
    if request.param == "simulated":
        yield SimulatedScene()
        return
    if request.param == "remote":
        far: Far = request.getfixturevalue("far")
        far.ask("reset")
        async with reached(far, tmp_path) as computer:
            yield RemoteScene(far, computer)
        return
    if request.param == "remote-x11":
        here: X11Scene = request.getfixturevalue("x11")
        async with reached(request.getfixturevalue("far_x11"), tmp_path) as computer:
            yield X11Scene(here.desktop, computer)
        for process in list(here.desktop.processes):
            here.desktop.end(process)
        return
    real: X11Scene | SwayScene = request.getfixturevalue(request.param)
    yield real
    await real.computer.aclose()
    for process in list(real.desktop.processes):
        real.desktop.end(process)


@pytest.fixture
def computer(scene: Scene) -> Computer:
    return scene.computer
