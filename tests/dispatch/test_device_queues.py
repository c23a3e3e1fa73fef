"""One holder at a time, whole workflows, and the person before everyone."""

import time
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from computer_linker.dispatch.device_queues import DeviceQueues, Times
from computer_linker.errors import Aborted, TimedOut
from computer_linker.model.principal import Principal

pytestmark = pytest.mark.anyio

A = Principal("local:a", "local_user", "session-a", "connection-a")
B = Principal("local:a", "local_user", "session-b", "connection-b")
QUICK = Times(lease=0.2, turn=60, queue=5, quiet=0.3)


async def workflow(queues: DeviceQueues, who: Principal, steps: int, log: list[str]) -> None:
    for _ in range(steps):
        async with queues.hold("desktop", who):
            log.append(who.session)
            await anyio.lowlevel.checkpoint()


async def test_two_clients_at_once_each_finish_their_whole_workflow_untorn() -> None:
    # A lease that outlasts any pause of a crowded machine between two steps.
    queues, log = DeviceQueues(times=replace(QUICK, lease=2, queue=60)), list[str]()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(workflow, queues, A, 20, log)
            group.start_soon(workflow, queues, B, 20, log)
    assert log == [A.session] * 20 + [B.session] * 20


async def test_one_at_a_time_also_within_a_session() -> None:
    queues, inside, most = DeviceQueues(times=QUICK), 0, 0

    async def act() -> None:
        nonlocal inside, most
        async with queues.hold("desktop", A):
            inside += 1
            most = max(most, inside)
            await anyio.wait_all_tasks_blocked()
            inside -= 1

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(act)
    assert most == 1


async def test_a_turn_ends_when_others_wait_too_long() -> None:
    queues, log = DeviceQueues(times=Times(lease=5, turn=0.1, queue=5, quiet=0)), list[str]()

    async def endless() -> None:
        while B.session not in log:
            await workflow(queues, A, 1, log)
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(endless)
            await anyio.lowlevel.checkpoint()
            group.start_soon(workflow, queues, B, 1, log)
    assert log.count(B.session) == 1


async def test_a_lane_that_is_never_free_is_a_timeout_that_can_be_retried() -> None:
    queues = DeviceQueues(times=Times(lease=5, turn=60, queue=0.05, quiet=0))
    async with queues.hold("desktop", A):
        with pytest.raises(TimedOut):
            async with queues.hold("desktop", B):
                raise AssertionError("two at once")
    assert TimedOut.retryable


async def test_halt_stops_the_act_empties_the_queue_and_holds_until_a_person_resumes(tmp_path: Path) -> None:
    marker = tmp_path / "halted"
    queues, ended = DeviceQueues(marker, QUICK), []

    async def act(who: Principal) -> None:
        try:
            async with queues.hold("desktop", who):
                await anyio.sleep_forever()
        except Aborted:
            ended.append(who.session)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(act, A)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(act, B)
            await anyio.wait_all_tasks_blocked()
            assert queues.halt() == 2
    assert sorted(ended) == [A.session, B.session]
    for later in (queues, DeviceQueues(marker, QUICK)):
        with pytest.raises(Aborted):
            async with later.hold("desktop", A):
                raise AssertionError("acted while halted")
    assert queues.resume() and not queues.resume()
    async with DeviceQueues(marker, QUICK).hold("desktop", A):
        pass


async def test_the_persons_own_hand_makes_the_next_act_wait() -> None:
    queues = DeviceQueues(times=replace(QUICK, quiet=600))
    async with queues.hold("desktop", A):
        queues.person_moved("desktop", time.monotonic())  # Our own act: it does not count.
    with anyio.fail_after(60):
        async with queues.hold("desktop", A):
            pass
    queues = DeviceQueues(times=QUICK)
    async with queues.hold("desktop", A):
        pass
    queues.person_moved("desktop", time.monotonic() + 0.3)
    moved = time.monotonic() + 0.3
    async with queues.hold("desktop", A):
        assert time.monotonic() >= moved + QUICK.quiet - 0.01


async def test_a_command_lines_single_act_leaves_no_lease() -> None:
    queues = DeviceQueues(times=Times(lease=60, queue=0.5))
    async with queues.hold("desktop", Principal("local:a", "cli", "cli-1", "c1")):
        pass
    async with queues.hold("desktop", A):
        pass


async def test_a_hand_that_is_surely_the_persons_ends_the_act_and_makes_everyone_wait() -> None:
    queues, ended = DeviceQueues(times=QUICK), []
    queues.person_moved("desktop", time.monotonic(), surely=True)  # Nobody acts here yet.
    with pytest.raises(Aborted) as stopped:
        async with queues.hold("desktop", A):
            queues.person_moved("desktop", time.monotonic())  # It may be our own act: it goes on.
            await anyio.lowlevel.checkpoint()
            ended.append("went on")
            queues.person_moved("desktop", time.monotonic(), surely=True)
            await anyio.sleep_forever()
    moved = time.monotonic()
    assert stopped.value.details == {"person": True} and ended == ["went on"]
    assert queues.is_paused and not queues.is_halted
    async with queues.hold("desktop", B):
        assert time.monotonic() >= moved + QUICK.quiet - 0.05


async def test_what_is_for_the_person_does_not_yield_to_their_hand_but_to_halt() -> None:
    queues = DeviceQueues(times=QUICK)
    with pytest.raises(Aborted) as stopped:
        async with queues.hold("desktop", A, yields=False):
            queues.person_moved("desktop", time.monotonic(), surely=True)
            await anyio.lowlevel.checkpoint()
            queues.halt()
            await anyio.sleep_forever()
    assert stopped.value.details == {"halted": True}


async def test_a_halt_by_another_process_stops_the_running_and_the_waiting_act(tmp_path: Path) -> None:
    """As where a program of the owner's own uses the tools while `computer-linker halt` is for the service."""
    marker, ended = tmp_path / "halted", list[str]()
    queues = DeviceQueues(marker, replace(QUICK, queue=60))

    async def act(who: Principal) -> None:
        try:
            async with queues.hold("desktop", who):
                await anyio.sleep_forever()
        except Aborted:
            ended.append(who.session)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(act, A)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(act, B)
            await anyio.wait_all_tasks_blocked()
            DeviceQueues(marker, QUICK).halt()
    assert sorted(ended) == [A.session, B.session]
