"""The bridge's real socket: on a machine without a desktop, and on a real desktop with a form."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from computer_linker.computer.local.probe import this_computer
from support.bridge_host import Host, hosting
from support.desktop import Desktop, missing, x11_desktop
from support.forms import Form, lacking, on_the_bus, open_form


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    """The bridge on this machine without a desktop."""
    async with hosting(tmp_path, this_computer({})) as opened:
        yield opened


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    if lack := missing():
        pytest.skip(f"not installed: {', '.join(lack)}")
    with x11_desktop(tmp_path_factory.mktemp("x11")) as opened:
        yield opened


@pytest.fixture(scope="module")
def form(desktop: Desktop) -> Iterator[Form]:
    if lack := lacking("gtk3"):
        pytest.skip(f"not installed: {lack}")
    opened = open_form(desktop, "gtk3")
    yield opened
    desktop.end(opened.process)


@pytest.fixture
async def live(tmp_path: Path, desktop: Desktop, form: Form) -> AsyncIterator[Host]:
    """The bridge on a real desktop with one form."""
    computer = this_computer(desktop.env)
    async with hosting(tmp_path, computer) as opened:
        await on_the_bus(computer, form)
        yield opened
