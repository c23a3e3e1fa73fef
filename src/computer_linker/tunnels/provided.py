"""The base class of providers that run a program: find, start, read its output, stop."""

import asyncio
from contextlib import ExitStack
from typing import Any

from computer_linker.config.schema import Config, TunnelName
from computer_linker.errors import ProviderUnavailable
from computer_linker.tunnels.base import Detected, Surroundings
from computer_linker.tunnels.program import Wanted, checked, runnable
from computer_linker.tunnels.running import Running, until_connected


class ProgramTunnel:
    """A tunnel run by a program. A subclass defines the program, its arguments and how its output is parsed."""

    name: TunnelName
    forwards_owner_token = False

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self._running: Running | None = None
        self._held = ExitStack()
        self.connected = asyncio.Event()
        self.url: str | None = None

    def wanted(self, config: Config) -> Wanted:
        """The program of this provider."""
        raise NotImplementedError

    def command(self, config: Config, port: int) -> tuple[list[str], dict[str, str]]:
        """Its arguments and environment. Raises ProviderUnavailable for missing configuration."""
        raise NotImplementedError

    def read_line(self, line: str) -> None:
        """Parse a line of output: the URL, or that it is connected."""
        raise NotImplementedError

    def detect(self) -> Detected:
        config = self.around.config()
        wanted = self.wanted(config)
        path: str | None = None
        try:
            path = checked(wanted, self._find(wanted), config)
            self.command(config, 0)
            with runnable(wanted, path):
                pass
        except ProviderUnavailable as error:
            return Detected(self.name, False, path, error.message, str(error.details.get("hint", "")))
        return Detected(self.name, True, path)

    async def expose(self, port: int) -> None:
        config = self.around.config()
        wanted = self.wanted(config)
        path = checked(wanted, self._find(wanted), config)
        arguments, env = self.command(config, port)
        program = self._held.enter_context(runnable(wanted, path))
        self._running = await Running.start(self.around, (program, *arguments), env, self.read_line)
        try:
            await self.connect(self._running)
        except BaseException:
            await asyncio.shield(self.stop())
            raise

    async def connect(self, running: Running) -> None:
        """Wait until it is connected."""
        await until_connected(self.connected, running, self.around.connect_s)

    def public_url(self) -> str | None:
        return self.url

    def status(self) -> dict[str, Any]:
        return self._running.status() if self._running is not None else {"pid": None, "pidStarted": None, "output": []}

    def is_connected(self) -> bool:
        return True

    async def ended(self) -> str:
        return await self._running.ended() if self._running is not None else "It was never opened."

    async def stop(self) -> None:
        if self._running is not None:
            await self._running.stop()
        self._held.close()

    def _find(self, wanted: Wanted) -> str | None:
        return None if wanted.path is not None else self.around.find(wanted.name)
