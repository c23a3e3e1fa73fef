"""One holder at a time, whole workflows, and the person before everyone."""

import time
from pathlib import Path

import anyio
import pytest

from computer_linker.dispatch.lanes import Lanes, Times
from computer_linker.errors import Aborted, TimedOut
from computer_linker.model.principal import Principal

pytestmark = pytest.mark.anyio

A = Principal("local:a", "local_user", "session-a", "connection-a")
B = Principal("local:a", "local_user", "session-b", "connection-b")
QUICK = Times(lease=0.2, turn=60, queue=5, quiet=0.3)


async def workflow(lanes: Lanes, who: Principal, steps: int, log: list[str]) -> None:
    for _ in range(steps):
        async with lanes.hold("desktop", who):
            log.append(who.session)
            await anyio.sleep(0)


async def test_two_clients_at_once_each_finish_their_whole_workflow_untorn() -> None:
    lanes, log = Lanes(times=QUICK), []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(workflow, lanes, A, 20, log)
            group.start_soon(workflow, lanes, B, 20, log)
    assert log == [A.session] * 20 + [B.session] * 20


async def test_one_at_a_time_also_within_a_session() -> None:
    lanes, inside, most = Lanes(times=QUICK), 0, 0

    async def act() -> None:
        nonlocal inside, most
        async with lanes.hold("desktop", A):
            inside += 1
            most = max(most, inside)
            await anyio.wait_all_tasks_blocked()
            inside -= 1

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(act)
    assert most == 1


async def test_a_turn_ends_when_others_wait_too_long() -> None:
    lanes, log = Lanes(times=Times(lease=5, turn=0.1, queue=5, quiet=0)), []

    async def endless() -> None:
        while B.session not in log:
            await workflow(lanes, A, 1, log)
            await anyio.sleep(0.01)

    with anyio.fail_after(3):
        async with anyio.create_task_group() as group:
            group.start_soon(endless)
            await anyio.lowlevel.checkpoint()
            group.start_soon(workflow, lanes, B, 1, log)
    assert log.count(B.session) == 1


async def test_a_lane_that_is_never_free_is_a_timeout_that_can_be_retried() -> None:
    lanes = Lanes(times=Times(lease=5, turn=60, queue=0.05, quiet=0))
    async with lanes.hold("desktop", A):
        with pytest.raises(TimedOut):
            async with lanes.hold("desktop", B):
                raise AssertionError("two at once")
    assert TimedOut.retryable


async def test_halt_stops_the_act_empties_the_queue_and_holds_until_a_person_resumes(tmp_path: Path) -> None:
    marker = tmp_path / "halted"
    lanes, ended = Lanes(marker, QUICK), []

    async def act(who: Principal) -> None:
        try:
            async with lanes.hold("desktop", who):
                await anyio.sleep_forever()
        except Aborted:
            ended.append(who.session)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(act, A)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(act, B)
            await anyio.wait_all_tasks_blocked()
            assert lanes.halt() == 2
    assert sorted(ended) == [A.session, B.session]
    for later in (lanes, Lanes(marker, QUICK)):
        with pytest.raises(Aborted):
            async with later.hold("desktop", A):
                raise AssertionError("acted while halted")
    assert lanes.resume() and not lanes.resume()
    async with Lanes(marker, QUICK).hold("desktop", A):
        pass


async def test_the_persons_own_hand_makes_the_next_act_wait() -> None:
    lanes = Lanes(times=QUICK)
    async with lanes.hold("desktop", A):
        lanes.person_moved("desktop", time.monotonic())  # Our own act: it does not count.
    started = time.monotonic()
    async with lanes.hold("desktop", A):
        assert time.monotonic() - started < QUICK.quiet
    lanes.person_moved("desktop", time.monotonic() + 0.3)
    moved = time.monotonic() + 0.3
    async with lanes.hold("desktop", A):
        assert time.monotonic() >= moved + QUICK.quiet - 0.01


async def test_a_command_lines_single_act_leaves_no_lease() -> None:
    lanes = Lanes(times=Times(lease=60, queue=0.5))
    async with lanes.hold("desktop", Principal("local:a", "cli", "cli-1", "c1")):
        pass
    async with lanes.hold("desktop", A):
        pass


async def test_a_hand_that_is_surely_the_persons_ends_the_act_and_makes_everyone_wait() -> None:
    lanes, ended = Lanes(times=QUICK), []
    lanes.person_moved("desktop", time.monotonic(), surely=True)  # Nobody acts here yet.
    with pytest.raises(Aborted) as stopped:
        async with lanes.hold("desktop", A):
            lanes.person_moved("desktop", time.monotonic())  # It may be our own act: it goes on.
            await anyio.lowlevel.checkpoint()
            ended.append("went on")
            lanes.person_moved("desktop", time.monotonic(), surely=True)
            await anyio.sleep_forever()
    moved = time.monotonic()
    assert stopped.value.details == {"person": True} and ended == ["went on"]
    assert lanes.is_paused and not lanes.is_halted
    async with lanes.hold("desktop", B):
        assert time.monotonic() >= moved + QUICK.quiet - 0.05


async def test_what_is_for_the_person_does_not_yield_to_their_hand_but_to_halt() -> None:
    lanes = Lanes(times=QUICK)
    with pytest.raises(Aborted) as stopped:
        async with lanes.hold("desktop", A, yields=False):
            lanes.person_moved("desktop", time.monotonic(), surely=True)
            await anyio.lowlevel.checkpoint()
            lanes.halt()
            await anyio.sleep_forever()
    assert stopped.value.details == {"halted": True}
