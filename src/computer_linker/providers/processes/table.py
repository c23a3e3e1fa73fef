"""The table of long-running processes: who may find which, and what became of them."""

from collections.abc import Awaitable, Callable
from typing import Any, Self

import anyio

from computer_linker.computer.facets.processes import PtySize
from computer_linker.errors import LimitExceeded, ProcessNotFound
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal
from computer_linker.providers.processes.managed import Managed, Owner
from computer_linker.providers.processes.prepare import Prepared
from computer_linker.providers.processes.records import Record, Records, now
from computer_linker.providers.processes.runner import Runner
from computer_linker.providers.sandbox.sandbox import Sandbox

_MAX_RUNNING = 256
"""In one scope at a time."""
_MAX_ENDED = 64
"""Ended processes whose output can still be read; older ones keep their record only."""
_STOP_GRACE_S = 2.0


class ProcessTable:
    """Processes outlive a client's disconnect, not the service's stop."""

    def __init__(self, runner: Runner, records: Records) -> None:
        self._runner = runner
        self._records = records
        self._managed: dict[str, Managed] = {}
        self._past: dict[str, Record] = {record.process_id: record for record in records.load()}

    @classmethod
    def open(cls, services: Any) -> Self:
        # Made first and so closed last: it looks at what processes planted once they have ended.
        services.use(Sandbox)
        return cls(services.use(Runner), Records(services.home / "processes"))

    async def start(
        self,
        owner: Owner,
        prepared: Prepared,
        *,
        max_runtime_s: float,
        preview: str | None = None,
        name: str | None = None,
        pty: PtySize | None = None,
        before_start: Callable[[], Awaitable[None]] | None = None,
    ) -> Managed:
        """Start a process that runs until it ends, is stopped, or its time is over."""
        try:
            self._refuse_too_many(owner)
            child = await self._runner.spawn(prepared.plan, prepared.env, stdin=True, pty=pty)
        except BaseException:
            prepared.plan.release()
            raise
        record = Record(
            process_id=new_handle("proc"),
            scope=owner.scope,
            principal=owner.principal,
            kind=owner.kind,
            command_preview=preview or preview_of(prepared),
            name=name,
            started_at=now(),
            status="running",
            boundary=prepared.boundary,
            pty=pty is not None,
        )
        managed = Managed(record, child, prepared.plan, self._records)
        try:
            if before_start is not None:
                await before_start()
        except BaseException:
            child.kill()
            managed.close()
            raise
        self._managed[record.process_id] = managed
        managed.start(max_runtime_s)
        self._retire()
        return managed

    def find(self, process_id: str, principal: Principal, scope: str, kind: str = "command") -> Managed:
        """The process of this id, if it is this caller's. Raises ProcessNotFound otherwise, and for one that is past."""
        managed = self._managed.get(process_id)
        if managed is None or not _is_theirs(managed.record, principal, scope, kind):
            raise _not_found(self._past.get(process_id), principal, scope, kind)
        return managed

    def listed(self, principal: Principal, scope: str, kind: str = "command") -> list[Record]:
        """Records of this caller's processes, the newest first."""
        records = [*self._past.values(), *(managed.record for managed in self._managed.values())]
        return [record for record in reversed(records) if _is_theirs(record, principal, scope, kind)]

    def running(self, process_id: str) -> Managed | None:
        """The held process of an id that `listed` gave."""
        return self._managed.get(process_id)

    def is_busy(self) -> bool:
        """True while something runs that a service which ends itself when idle would take along."""
        return any(managed.is_running for managed in self._managed.values())

    async def end_of(self, principal: str) -> int:
        """Stop what this caller left running; how many processes that were."""
        theirs = [each for each in self._managed.values() if each.is_running and each.record.principal == principal]
        await _stop(theirs)
        return len(theirs)

    async def aclose(self) -> None:
        """Stop everything; the records say so."""
        await _stop(list(self._managed.values()))
        with anyio.move_on_after(1):
            for managed in self._managed.values():
                while managed.is_running:
                    await managed.changed(1)
        for managed in self._managed.values():
            managed.close()
        self._managed.clear()

    def _refuse_too_many(self, owner: Owner) -> None:
        running = sum(1 for each in self._managed.values() if each.is_running and each.record.scope == owner.scope)
        if running >= _MAX_RUNNING:
            raise LimitExceeded(
                f"{_MAX_RUNNING} processes run in this scope already; stop some first.", running=running
            )

    def _retire(self) -> None:
        """Let go of the output of processes that ended long ago."""
        ended = [managed for managed in self._managed.values() if not managed.is_running]
        for managed in ended[: max(0, len(ended) - _MAX_ENDED)]:
            self._past[managed.record.process_id] = managed.record
            del self._managed[managed.record.process_id]
            managed.close()
        for process_id in list(self._past)[: max(0, len(self._past) - 2 * _MAX_ENDED)]:
            del self._past[process_id]
            self._records.forget(process_id)


async def _stop(processes: list[Managed]) -> None:
    async with anyio.create_task_group() as group:
        for managed in processes:
            group.start_soon(managed.stop, "term", _STOP_GRACE_S)


def preview_of(prepared: Prepared) -> str:
    """The program and how many arguments it got; an argument may be a secret, so none is shown."""
    count = len(prepared.argv) - 1
    return f"{prepared.program} (+{count} argument{'' if count == 1 else 's'})" if count else prepared.program


def _is_theirs(record: Record, principal: Principal, scope: str, kind: str) -> bool:
    return record.scope == scope and record.kind == kind and principal.owns(record.principal)


def _not_found(past: Record | None, principal: Principal, scope: str, kind: str) -> ProcessNotFound:
    if past is not None and _is_theirs(past, principal, scope, kind):
        return ProcessNotFound(
            f"The process ended ({past.status}), and its output is no longer kept.", status=past.status
        )
    return ProcessNotFound("There is no such process in this scope. command.list shows yours.")
