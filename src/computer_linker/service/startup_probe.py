"""Startup probe: does in the background what the first command or the first get_computer_info would have to wait for."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from computer_linker.model.capability import Capability
from computer_linker.service.app import App
from computer_linker.service.catalogue import Catalogue, is_kept
from computer_linker.service.expected_boundary import ExpectedBoundary
from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.service.programs import InstalledPrograms
from computer_linker.transports.mcp.fast_path import FastPath
from computer_linker.transports.mcp.list_changes import ListChanges
from computer_linker.transports.mcp.prepared import is_current, prepared, write_prepared

log = logging.getLogger(__name__)
_AFTER_S = 0.2
"""Delay: the first client's handshake has priority."""
_ANSWERS_AFTER_S = 0.5
"""Delay: it imports every operation, which the first calls would wait for."""
_CATALOGUE_AFTER_S = 1.0
"""Delay: the schemas take a third of a second of the processor, and few clients ask for them."""
_RUNS_COMMANDS = frozenset({Capability.COMMAND_RUN, Capability.PACKAGE_RUN, Capability.CODEX_RUN})


@asynccontextmanager
async def boundary_found_out(
    app: App, fast_path: FastPath | None = None, introspection: ServiceIntrospection | None = None
) -> AsyncIterator[None]:
    """In the background, write the answers for the next start, probe the kernel boundary if needed, prepare the first answer."""
    tasks = [asyncio.create_task(find_out(app)), asyncio.create_task(_prepare_info(app, introspection))]
    if fast_path is not None:
        tasks.append(asyncio.create_task(_write_answers(app, fast_path)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _write_answers(app: App, fast_path: FastPath) -> None:
    await asyncio.sleep(_ANSWERS_AFTER_S)
    if await asyncio.to_thread(is_current, app.home):
        fast_path.tools.list_changes.lists_are_current()
        return
    try:
        # In a thread: it imports every operation.
        await asyncio.to_thread(lambda: write_prepared(app.home, prepared(fast_path)))
    except OSError as error:
        log.warning("the answers for the next start were not written: %s", error.strerror)
    fast_path.tools.list_changes.tools_are_known()


async def _prepare_info(app: App, introspection: ServiceIntrospection | None) -> None:
    """Read or build the catalogue, and look at what get_computer_info reports, before a client asks."""
    # A service that no client uses stays small.
    await app.services.use(ListChanges).has_clients.wait()
    await asyncio.to_thread(app.services.use(InstalledPrograms).check_launchers, app.config.scopes)
    if not is_kept(app.home):
        await asyncio.sleep(_CATALOGUE_AFTER_S)
    await app.services.use(Catalogue).warm()
    if introspection is not None:
        await introspection.rehearse()


async def find_out(app: App) -> None:
    """Wait a moment, then probe."""
    if not any(_RUNS_COMMANDS & scope.granted and scope.policy.sandbox != "off" for scope in app.config.scopes):
        return
    expected = app.services.use(ExpectedBoundary)
    expected.begin()
    try:
        await asyncio.sleep(_AFTER_S)
        from computer_linker.providers.sandbox.sandbox import Sandbox

        found = await app.services.use(Sandbox).probe()
    finally:
        expected.end()
    try:
        await asyncio.to_thread(expected.keep, found)
    except OSError as error:
        log.warning("the boundary for the next start was not written: %s", error.strerror)
