"""Services that many tests of one file share; each test leaves them as it found them."""

from collections.abc import Iterator

import pytest

from support.service import TOKEN, Service, serving


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with an owner token and a public address, as behind a tunnel."""
    folder = tmp_path_factory.mktemp("guarded")
    with serving(folder, token=TOKEN, publicBaseUrl="https://linker.example.com") as running:
        yield running


@pytest.fixture(scope="module")
def open_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on loopback without a token."""
    with serving(tmp_path_factory.mktemp("open")) as running:
        yield running
