"""One long-running process: its output, its input and its outcome."""

import asyncio
import time
from dataclasses import dataclass
from functools import partial

import anyio

from computer_linker.computer.facets.processes import Child, Ended, SignalName
from computer_linker.errors import Conflict
from computer_linker.providers.processes.echo import Echoes
from computer_linker.providers.processes.records import Record, Records, Status, now
from computer_linker.providers.processes.ring import Ring, Stream
from computer_linker.providers.processes.runner import limits_reached, stopped
from computer_linker.providers.processes.streams import Feed, Pump, close_streams
from computer_linker.providers.sandbox.boundary import SpawnPlan

_DRAIN_S = 0.25
_MAX_PENDING_INPUT = 1_000_000


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a process. Only the same caller in the same scope can find it."""

    scope: str
    principal: str
    kind: str = "command"
    client: str | None = None


class Managed:
    """A process in the table. Created while the process waits at its start gate; `start` lets it run."""

    def __init__(self, record: Record, child: Child, plan: SpawnPlan, records: Records) -> None:
        self.record = record
        self.child = child
        self.ring = Ring(records.folder)
        self.echoes = Echoes(self.ring)
        self.last_output = 0.0
        """When it printed last, on the monotonic clock."""
        self._records = records
        self._plan = plan
        self._planting = plan.planting
        self._is_settled = False
        if plan.planting is not None:
            plan.planting.command = record.process_id
        self._stop_requested = False
        self._changed = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._feed = Feed(child.stdin) if child.stdin is not None else None
        self._timer: asyncio.TimerHandle | None = None
        self._ended: Ended | None = None
        self._limits_reached: tuple[str, ...] = ()
        self._pumps = [Pump(child.stdout, partial(self._take, "stdout"), self._settle_if_over, plan.mask)]
        if child.stderr is not None:
            took = partial(self._take, "stderr")
            self._pumps.append(Pump(child.stderr, took, self._settle_if_over, plan.mask))

    @property
    def refused(self) -> list[str]:
        """A sentence for each planted name that was removed."""
        return [] if self._planting is None else self._planting.refused

    @property
    def warnings(self) -> tuple[str, ...]:
        """Limits it ran into, and hosts that were refused to it."""
        return (*self._limits_reached, *self._plan.gate_warnings())

    @property
    def end(self) -> int:
        """The cursor after all output so far."""
        return self.ring.end

    def printed(self, since: int, limit: int) -> bytes:
        """The last output since a cursor, without the echo of what was typed."""
        return self.echoes.without(since, limit)

    @property
    def is_running(self) -> bool:
        return self.record.status == "running"

    def start(self, max_runtime_s: float) -> None:
        """Open the gate, and start the time limit of the scope's policy."""
        self._records.save(self.record)
        self.child.when_ended(self._has_ended)
        self._timer = self._loop.call_later(max_runtime_s, self._out_of_time)
        self.child.go()

    async def changed(self, wait_s: float) -> None:
        """Return at the next output or the end, or after the time."""
        with anyio.move_on_after(wait_s):
            await self._changed.wait()

    def send(self, data: bytes) -> None:
        """Write to the process's input. Raises Conflict when it accepts no more."""
        self.check_input()
        assert self._feed is not None
        if self._feed.pending + len(data) > _MAX_PENDING_INPUT:
            raise Conflict("The process does not read its input, and too much is waiting for it already.")
        self.echoes.typed(data, self.child.echo())
        if data == b"\x04" and not self.record.pty:
            self._feed.finish()
        else:
            self._feed.write(data)

    def check_input(self) -> None:
        """Raise Conflict where the process takes no more input."""
        if not self.is_running or self._feed is None or not self._feed.is_open:
            raise Conflict("The process takes no more input.", processId=self.record.process_id)

    def waits_for_input(self) -> bool | None:
        """True while the program is blocked reading its input; None where that cannot be known."""
        return self.child.waits_for_input() if self.is_running else False

    async def stop(self, signal: SignalName, grace_s: float) -> None:
        """Stop its process tree: the signal first, SIGKILL after the grace period."""
        if self.is_running:
            self._stop_requested = True
            await stopped(self.child, 0 if signal == "kill" else grace_s, signal)

    def close(self) -> None:
        """Release everything but the record."""
        if self._timer is not None:
            self._timer.cancel()
        close_streams(self._pumps, self._feed, self.child.stdin)
        self._plan.release()
        self.ring.close()

    def _take(self, stream: Stream, data: memoryview) -> None:
        self.last_output = time.monotonic()
        self.ring.write(stream, bytes(data))
        self._notify()

    def _has_ended(self, ended: Ended) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ended = ended
        self._limits_reached = limits_reached(ended)
        self._plan.release(self._has_settled)
        # Its last output may still be in the pipe, which an orphan may hold open.
        self._loop.call_later(_DRAIN_S, self._stop_reading)
        self._settle_if_over()

    def _has_settled(self) -> None:
        self._is_settled = True
        self._settle_if_over()

    def _stop_reading(self) -> None:
        for pump in self._pumps:
            pump.close()

    def _settle_if_over(self) -> None:
        is_over = self._ended is not None and self._is_settled and all(pump.is_closed for pump in self._pumps)
        if self._ended is not None and is_over and self.is_running:
            self._settle(self._ended)

    def _settle(self, ended: Ended) -> None:
        if self._feed is not None:
            self._feed.close()
        if not self.ring.is_closed:
            self.ring.finish()
        status: Status = "stopped" if self._stop_requested else "exited"
        self.record = self.record.model_copy(
            update={"status": status, "exit_code": ended.exit_code, "signal": ended.signal, "ended_at": now()}
        )
        self._records.save(self.record)
        self._notify()

    def _out_of_time(self) -> None:
        self._stop_requested = True
        self.child.kill()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
