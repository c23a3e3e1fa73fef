"""A desktop with one form on it for a whole test module."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop
from support.forms import TOOLKITS, Form, lacking, on_the_bus, open_form
from support.road import Road, computer_scope
from support.session import Session


@pytest.fixture(scope="module", params=TOOLKITS)
def form(request: pytest.FixtureRequest, desktop: Desktop) -> Iterator[Form]:
    """The form in one toolkit."""
    if lack := lacking(request.param):
        pytest.skip(f"not installed: {lack}")
    opened = open_form(desktop, request.param)
    yield opened
    desktop.end(opened.process)


@pytest.fixture
async def computer(desktop: Desktop) -> AsyncIterator[Computer]:
    """This machine, seen through that desktop."""
    opened = this_computer(desktop.env)
    yield opened
    await opened.aclose()


@pytest.fixture
async def session(tmp_path: Path, desktop: Desktop, form: Form) -> AsyncIterator[Session]:
    """The whole road on that desktop."""
    computer = this_computer(desktop.env)
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road:
        await on_the_bus(computer, form)
        yield Session(road, form)
