"""One Windows machine for the tests of a file: wine is slow to boot, and no file sees what another one left."""

import os
from collections.abc import Iterator

import pytest

from windows.machine import Client, Machine


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    made = Machine(f"m{os.getpid()}-{request.module.__name__.rpartition('.')[2]}")
    made.set_up()
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(machine: Machine) -> Iterator[Client]:
    """A client of `stdio`, which starts the service."""
    with Client(machine) as opened:
        yield opened
