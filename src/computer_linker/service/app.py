"""The composition root: the only place that chooses which computer, and joins the parts to one road."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from computer_linker import operations
from computer_linker.audit.store import AuditStore
from computer_linker.computer.base import Computer
from computer_linker.computer.facets.absent import Absent
from computer_linker.computer.local.probe import this_computer
from computer_linker.config.schema import Config
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.farewell import Farewell
from computer_linker.providers.agents.forgetting import forget_daily
from computer_linker.registry.catalog import Catalog, collect
from computer_linker.registry.services import Services
from computer_linker.undo.journal import Journal
from computer_linker.undo.steps import recover


@dataclass(frozen=True)
class App:
    """One service of one state folder."""

    home: Path
    catalog: Catalog
    services: Services
    computer: Computer
    dispatcher: Dispatcher

    @property
    def config(self) -> Config:
        return self.services.config

    async def has_work(self) -> bool:
        """True while a long-lived part still has something running, such as a managed process."""
        for part in self.services.made():
            busy = getattr(part, "is_busy", None)
            if busy is not None and busy():
                return True
        return False


@asynccontextmanager
async def open_app(home: Path, config: Callable[[], Config], computer: Computer | None = None) -> AsyncIterator[App]:
    """Join the parts; everything they hold is let go at the end."""
    services = Services(home, config)
    catalog = collect(operations)
    machine = computer or this_computer()
    services.provide(Computer, machine)
    services.provide(Catalog, catalog)
    try:
        await _make_files_safe(home, services, machine)
        dispatcher = Dispatcher(catalog, services, machine, services.use(AuditStore))
        services.provide(Dispatcher, dispatcher)
        farewell = Farewell(dispatcher)
        services.provide(Farewell, farewell)
        services.gone = farewell.begin
        forgetting = asyncio.create_task(forget_daily(home / "agents"))
        try:
            yield App(home, catalog, services, machine, dispatcher)
        finally:
            forgetting.cancel()
    finally:
        await services.aclose()


async def _make_files_safe(home: Path, services: Services, machine: Computer) -> None:
    """Close the state folder to every scope, and put back what a crash left half changed."""
    if isinstance(machine.files, Absent):
        return
    machine.files.protect(home)
    if (home / "undo").is_dir():
        await recover(services.use(Journal), machine.files)
