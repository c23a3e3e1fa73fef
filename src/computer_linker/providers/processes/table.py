"""The table of long-running processes, their owners and their outcomes."""

from collections.abc import Awaitable, Callable
from typing import Self

import anyio

from computer_linker.audit.command_line import command_preview
from computer_linker.computer.facets.processes import PtySize
from computer_linker.errors import LimitExceeded, ProcessNotFound
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal, is_of
from computer_linker.providers.processes.managed import Managed, Owner
from computer_linker.providers.processes.prepare import Prepared
from computer_linker.providers.processes.records import Record, Records, now
from computer_linker.providers.processes.runner import Runner
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.services import Services

_MAX_RUNNING = 256
"""In one scope at a time."""
_MAX_ENDED = 64
"""Ended processes whose output can still be read; of older ones only the record remains."""
_STOP_GRACE_S = 2.0


class ProcessTable:
    """Processes outlive a client's disconnect, not the service's stop."""

    def __init__(self, runner: Runner, records: Records) -> None:
        self._runner = runner
        self._records = records
        self._managed: dict[str, Managed] = {}
        self._past: dict[str, Record] = {record.process_id: record for record in records.load()}

    @classmethod
    def open(cls, services: Services) -> Self:
        # Created first and so closed last: it scans for planted names once the processes have ended.
        services.use(Sandbox)
        return cls(services.use(Runner), Records(services.home / "processes"))

    async def start(
        self,
        owner: Owner,
        prepared: Prepared,
        *,
        max_runtime_s: float,
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
            command_preview=preview_of(prepared),
            name=name,
            started_at=now(),
            status="running",
            boundary=prepared.boundary,
            pty=pty is not None,
            client=owner.client,
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
        """The process of this id, if it is this caller's. Raises ProcessNotFound otherwise, and for a dropped one."""
        managed = self._managed.get(process_id)
        if managed is None or not _is_theirs(managed.record, principal, scope, kind):
            raise _not_found(self._past.get(process_id), principal, scope, kind)
        return managed

    def listed(self, principal: Principal, scope: str, kind: str = "command") -> list[Record]:
        """Records of this caller's processes, the newest first."""
        return [record for record in self.every() if _is_theirs(record, principal, scope, kind)]

    def every(self) -> list[Record]:
        """Records of all processes, the newest first, for the owner."""
        return [*self._past.values(), *(managed.record for managed in self._managed.values())][::-1]

    def beginning(self, text: str) -> Managed:
        """The process whose id has this prefix, for the owner. Raises ProcessNotFound for none, several, and a dropped one."""
        fitting = [record for record in self.every() if text and record.process_id.startswith(text)]
        if len(fitting) != 1:
            which = "no process" if not fitting else "more than one process"
            raise ProcessNotFound(f"{which} begins with {text[:40]!r}", hint="computer-linker process list shows them")
        managed = self._managed.get(fitting[0].process_id)
        if managed is None:
            raise ProcessNotFound(
                f"{fitting[0].process_id} ended in an earlier run of the service ({fitting[0].status}); its output is gone."
            )
        return managed

    def running(self, process_id: str) -> Managed | None:
        """The process of an id that `listed` returned."""
        return self._managed.get(process_id)

    def is_busy(self) -> bool:
        """True while a process runs that a service's idle shutdown would end."""
        return any(managed.is_running for managed in self._managed.values())

    async def end_of(self, principal: str | None) -> int:
        """Stop the processes of one caller, or of all; returns how many."""
        theirs = [
            each for each in self._managed.values() if each.is_running and is_of(each.record.principal, principal)
        ]
        await _stop(theirs)
        return len(theirs)

    async def aclose(self) -> None:
        """Stop everything and record it."""
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
        """Drop the output of the oldest ended processes."""
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
    """The command line by the program's name, secrets masked."""
    return command_preview([prepared.program, *prepared.argv[1:]])


def _is_theirs(record: Record, principal: Principal, scope: str, kind: str) -> bool:
    return record.scope == scope and record.kind == kind and principal.owns(record.principal)


def _not_found(past: Record | None, principal: Principal, scope: str, kind: str) -> ProcessNotFound:
    if past is not None and _is_theirs(past, principal, scope, kind):
        return ProcessNotFound(
            f"The process ended ({past.status}), and its output is no longer kept.", status=past.status
        )
    return ProcessNotFound("There is no such process in this scope. command.list shows yours.")
