"""The composition root: the only place that selects the computer and connects the components to the dispatcher."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from computer_linker import operations
from computer_linker.approvals.approvals import Answerer, Approvals
from computer_linker.approvals.notification import NotificationApprover
from computer_linker.approvals.push import PushApprover
from computer_linker.approvals.request import Answer, ApprovalRequest, facts_of
from computer_linker.audit.store import AuditStore
from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.manifest import Absent
from computer_linker.config.schema import Config
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.dispatch.revocation import Revocation
from computer_linker.model.envelope import Call
from computer_linker.model.principal import Principal
from computer_linker.providers.agents.sessions import forget_daily
from computer_linker.providers.processes.rights_watch import RightsWatch
from computer_linker.registry.catalog import Catalog, collect_on_demand
from computer_linker.services import Services
from computer_linker.undo.journal import UndoJournal
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
        """True while a long-lived component is busy, such as with a managed process."""
        for part in self.services.made():
            busy = getattr(part, "is_busy", None)
            if busy is not None and busy():
                return True
        return False


@asynccontextmanager
async def open_app(home: Path, config: Callable[[], Config], computer: Computer | None = None) -> AsyncIterator[App]:
    """Connect the components; all are closed at the end."""
    services = Services(home, config)
    catalog = collect_on_demand(operations)
    machine = computer or this_computer()
    machine.scopes = lambda: config().scopes
    services.provide(Computer, machine)
    services.provide(Catalog, catalog)
    try:
        await _make_files_safe(home, services, machine)
        dispatcher = Dispatcher(catalog, services, machine, services.use(AuditStore))
        services.provide(Dispatcher, dispatcher)
        services.note = dispatcher.note
        services.call = partial(_called, dispatcher)
        approvals = services.use(Approvals)
        approvals.record = partial(_record_answer, dispatcher)
        dispatcher.sessions.left = approvals.left
        hold_desktop = partial(dispatcher.queues.hold, "desktop", yields=False)
        approvals.offer(NotificationApprover(services, hold_desktop).find, "notification")
        approvals.offer(services.use(PushApprover).find, "page")
        revocation = Revocation(dispatcher)
        services.provide(Revocation, revocation)
        services.gone = revocation.begin
        services.use(RightsWatch).report = revocation.taken
        forgetting = asyncio.create_task(forget_daily(home / "agents"))
        try:
            yield App(home, catalog, services, machine, dispatcher)
        finally:
            forgetting.cancel()
    finally:
        await services.aclose()


async def _record_answer(dispatcher: Dispatcher, asked: ApprovalRequest, answer: Answer, by: Answerer) -> str:
    """Record an answer from another channel than the owner's command line, which records its own."""
    name = "approvals.deny" if answer == "no" else "approvals.allow"
    return await dispatcher.note(name, by.who, facts_of(asked, answer, by.way))


async def _called(dispatcher: Dispatcher, call: Call, principal: Principal) -> Mapping[str, Any]:
    """Call an operation as the client whose program asks for it."""
    reply = await dispatcher.call(call, principal)
    envelope: dict[str, Any] = to_jsonable_python(reply.envelope, by_alias=True)
    return envelope


async def _make_files_safe(home: Path, services: Services, machine: Computer) -> None:
    """Close the state folder to every scope, and undo what a crash left half changed."""
    if isinstance(machine.files, Absent):
        return
    machine.files.protect(home)
    if (home / "undo").is_dir():
        await recover(services.use(UndoJournal), machine.files)
