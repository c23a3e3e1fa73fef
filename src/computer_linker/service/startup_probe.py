"""Startup probe: does in the background what the first command would have to wait for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from computer_linker.model.capability import Capability
from computer_linker.service.app import App

_AFTER_S = 0.2
"""Delay: the first client's handshake has priority."""
_RUNS_COMMANDS = frozenset({Capability.COMMAND_RUN, Capability.PACKAGE_RUN, Capability.CODEX_RUN})


@asynccontextmanager
async def boundary_found_out(app: App) -> AsyncIterator[None]:
    """Probe the kernel boundary in the background, if a scope may run commands inside one."""
    looking = asyncio.create_task(find_out(app))
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.wait([looking])


async def find_out(app: App) -> None:
    """Wait a moment, then probe."""
    await asyncio.sleep(_AFTER_S)
    if any(_RUNS_COMMANDS & scope.granted and scope.policy.sandbox != "off" for scope in app.config.scopes):
        from computer_linker.providers.sandbox.sandbox import Sandbox

        await app.services.use(Sandbox).probe()
