"""One lane a device: one act at a time, in order of arrival."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from computer_linker.model.principal import Principal


class Lanes:
    """The lanes of this machine, made when first used."""

    def __init__(self) -> None:
        self._locks: dict[str, anyio.Lock] = {}

    @asynccontextmanager
    async def hold(self, name: str, holder: Principal) -> AsyncIterator[None]:
        """Hold the lane while the body runs."""
        lock = self._locks.setdefault(name, anyio.Lock())
        async with lock:
            yield
