"""A real X11 desktop for a whole test module, and the computer on it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, missing, x11_desktop
from support.harness import Harness


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    """Xvfb with openbox and a session bus, of this module's own."""
    if lacking := missing():
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with x11_desktop(tmp_path_factory.mktemp("x11")) as opened:
        yield opened


@pytest.fixture
async def computer(desktop: Desktop) -> AsyncIterator[Computer]:
    """This machine, seen through that desktop."""
    opened = this_computer(desktop.env)
    yield opened
    await opened.aclose()


@pytest.fixture
def harness(desktop: Desktop) -> Iterator[Harness]:
    """A window that tells what reached it."""
    opened = Harness.open(desktop)
    yield opened
    desktop.end(opened.process)
