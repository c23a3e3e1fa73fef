"""Runs the owner's operations: in the running service, or in the command's own process when no service runs."""

import asyncio
from pathlib import Path
from typing import Any

from computer_linker.audit.log import Unrecorded
from computer_linker.audit.store import AuditStore
from computer_linker.config.private import not_set_up
from computer_linker.config.store import exists
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import ConfigInvalid, InvalidRequest
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call, Reply
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal
from computer_linker.registry.catalog import Catalog, collect
from computer_linker.registry.context import Progress
from computer_linker.registry.operation import Operation
from computer_linker.service.app import App
from computer_linker.service.config_edits import ConfigEdits
from computer_linker.service.lifetime import Lifetime
from computer_linker.services import Services
from computer_linker.system import os, user_name
from computer_linker.transports.mcp.tools import Tools, check_arguments


class OwnerCalls:
    """The owner's catalogue behind the dispatcher. Acts are audited; read-only operations are not."""

    def __init__(self, dispatcher: Dispatcher, catalog: Catalog | None = None) -> None:
        self._dispatcher = dispatcher
        self._catalog = catalog

    async def call(self, name: str, given: Any, principal: Principal, report: Progress | None = None) -> Reply:
        """Run one operation. The dispatcher refuses every principal that is not the owner."""
        if self._catalog is None:
            from computer_linker import owner

            self._catalog = collect(owner)
        found = self._catalog.by_name.get(name)
        asks = found is not None and found.effect is Effect.OBSERVE
        dispatcher = self._dispatcher.with_catalog(self._catalog, Unrecorded() if asks else None)
        if not asks:
            # What was edited by hand before this act stands before it in the history.
            await dispatcher.services.use(ConfigEdits).look()
        return await dispatcher.call(Call("", name, input=given), principal, report)


def owner_principal() -> Principal:
    """The owner at the command line. Each use is its own session and connection."""
    return Principal(f"cli:{user_name(os.getuid())}", "cli", new_handle("cli"), new_handle("conn"), "computer-linker")


def call_without_service(home: Path, op: Operation, given: dict[str, Any]) -> dict[str, Any] | None:
    """Run the operation without a service; None when a service or another command holds the lock.

    The lock is held meanwhile, so that no service starts during the change.
    """
    from computer_linker.home import take_lock

    if op.effect is Effect.OBSERVE:
        return call_here(home, op, given)
    if op.command is not None and op.command.needs_setup and not home.exists():
        raise not_set_up()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = take_lock(os.fspath(home))
    if lock is None:
        return None
    try:
        return call_here(home, op, given)
    finally:
        os.close(lock)


def call_here(home: Path, op: Operation, given: dict[str, Any]) -> dict[str, Any]:
    """Run the operation in this process. Several processes may write to the history."""
    return asyncio.run(_call_here(home, op, given)).envelope


async def _call_here(home: Path, op: Operation, given: dict[str, Any]) -> Reply:
    from computer_linker.computer.local.probe import this_computer
    from computer_linker.computer.manifest import Absent
    from computer_linker.service.settings import exposed_config

    services = Services(home, exposed_config(home).current)
    audit = Unrecorded() if op.effect is Effect.OBSERVE else _history(services)
    machine = this_computer()
    if not isinstance(machine.files, Absent):
        machine.files.protect(home)
    dispatcher = Dispatcher(Catalog({op.name: op}, {op.name: op}), services, machine, audit)
    services.provide(Dispatcher, dispatcher)
    try:
        if op.effect is not Effect.OBSERVE and exists(home):
            services.note = dispatcher.note
            await services.use(ConfigEdits).look()
        reply = await dispatcher.call(Call("", op.name, input=given), owner_principal())
        data = reply.envelope.get("data")
        return Reply(reply.envelope | {"data": data.to_wire()}) if data is not None else reply
    finally:
        await services.aclose()


def _history(services: Services) -> AuditStore:
    try:
        audit = AuditStore.open(services)
    except ConfigInvalid:
        # The owner repairs the config with a command, which is audited like any other.
        audit = AuditStore(services.home / "audit")
    services.provide(AuditStore, audit)
    return audit


# Control requests of the command line over the private socket: tools, and the service's lifetime.


class Controls:
    """Answers one control request: `{"tool", "arguments"}` or `{"action"}`."""

    def __init__(self, app: App, tools: Tools, lifetime: Lifetime) -> None:
        self._app = app
        self._tools = tools
        self._lifetime = lifetime
        self._owner = OwnerCalls(app.dispatcher)

    async def __call__(self, request: dict[str, Any], principal: Principal, report: Progress) -> dict[str, Any]:
        if type(request) is not dict:
            raise InvalidRequest("A control request is an object.")
        if "tool" in request:
            return await self._tool(request, principal)
        if "owner" in request:
            return (await self._owner.call(str(request["owner"]), request.get("input"), principal, report)).envelope
        match request.get("action"):
            case "hello":
                return {"ok": True, "localUrl": self._lifetime.local_url}
            case "make_way":
                return self._stop_if_on_demand()
            case _:
                raise InvalidRequest("There is no such control action.")

    async def _tool(self, request: dict[str, Any], principal: Principal) -> dict[str, Any]:
        name = request["tool"]
        if name == "computer_operation":
            reply = await self._app.dispatcher.call_wire(check_arguments(request.get("arguments")), principal)
            return reply.envelope
        if type(name) is not str or not self._tools.has(name):
            raise InvalidRequest("There is no such tool.")
        reply = await self._tools.call(name, check_arguments(request.get("arguments")), principal)
        return reply.envelope

    def _stop_if_on_demand(self) -> dict[str, Any]:
        """End an on-demand service in favour of one that a person starts; a service with its own port stays."""
        if self._lifetime.local_url is not None:
            return {"ok": False, "localUrl": self._lifetime.local_url}
        self._lifetime.end()
        return {"ok": True}
