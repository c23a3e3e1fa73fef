"""Programs started on a paired computer one facet call at a time: that computer judges, confines, records and ends them."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.facets.processes import Child, Ended, KernelRules, Launch, Processes, PtySize
from computer_linker.errors import InvalidRequest, LimitExceeded, LinkError, PermissionDenied, ProcessNotFound
from computer_linker.transports.peer.children import PeerChildren
from computer_linker.transports.peer.table import PeerTable
from support.noise import noise
from support.pair import Pair, events_of, open_pair
from support.proxy import Relay, relay_to
from support.road import folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio
SH = "/bin/sh"


@asynccontextmanager
async def paired(tmp_path: Path, *grants: str, **policy: Any) -> AsyncIterator[tuple[Pair, Processes]]:
    scopes = [folder_scope(tmp_path / "laptop" / "root", **policy), folder_scope(tmp_path / "other", "other")]
    (tmp_path / "other").mkdir()
    async with open_pair(tmp_path, scopes) as pair:
        pair.laptop.app.services.provide(PeerChildren, PeerChildren(unwatched_s=1.0))
        await pair.paired(*(grants or ("app", "other")))
        computer = await pair.routes.remote_computer("laptop", "app")
        yield pair, computer.processes
        await computer.aclose()


@pytest.fixture
async def laptop(tmp_path: Path) -> AsyncIterator[tuple[Pair, Processes]]:
    async with paired(tmp_path) as made:
        yield made


@pytest.fixture
async def relay(laptop: tuple[Pair, Processes]) -> AsyncIterator[Relay]:
    pair, _ = laptop
    async with relay_to(int(pair.address.rpartition(":")[2])) as made:
        table = pair.desk.app.services.use(PeerTable)
        table.change(replace(table.find("laptop"), address=made.address))
        yield made


async def read_all(fd: int) -> bytes:
    pieces: list[bytes] = []
    with anyio.fail_after(60):
        while True:
            await anyio.wait_readable(fd)
            if not (piece := os.read(fd, 1 << 16)):
                return b"".join(pieces)
            pieces.append(piece)


def let_go(child: Child) -> None:
    for fd in {child.stdin, child.stdout, child.stderr} - {None}:
        os.close(fd)  # type: ignore[arg-type]  # None was taken out


def sh(script: str, **more: Any) -> Launch:
    return Launch((SH, "-c", script), {}, **more)


@pytest.mark.parametrize(
    ("policy", "grants"),
    [
        ({"deniedCommands": ["touch *"]}, ()),
        ({"allowedCommands": ["echo *"]}, ()),
        ({}, ("app:fs:read", "app:command:run")),
        ({}, ("app:fs:read", "app:process:manage")),
        ({"confirm": "all"}, ()),
    ],
)
async def test_what_the_scope_does_not_allow_never_starts(
    tmp_path: Path, policy: dict[str, Any], grants: tuple[str, ...]
) -> None:
    async with paired(tmp_path, *grants, **policy) as (pair, processes):
        with pytest.raises(LinkError) as refused:
            await processes.spawn(Launch(("/usr/bin/touch", "mark"), {}))
        assert refused.value.code in ("permission_denied", "confirm_required")
        assert not (pair.laptop.root / "mark").exists()
        assert not pair.laptop.app.services.use(PeerChildren).is_busy()
        (event,) = await events_of(pair.laptop, "processes.spawn")
        assert (event["ok"], event["principal"], event["errorCode"]) == (False, pair.caller, refused.value.code)


@pytest.mark.parametrize(
    "launch",
    [
        sh("touch mark", cwd_fd=0),
        sh("touch mark", fds=(0,)),
        sh("touch mark", kernel=KernelRules(write=("/",))),
        sh("touch mark", wrapped=True),
        sh("touch mark", gate="argv"),
    ],
)
async def test_descriptors_and_boundaries_of_one_machine_are_not_sent_to_another(
    laptop: tuple[Pair, Processes], launch: Launch
) -> None:
    pair, processes = laptop
    with pytest.raises(InvalidRequest):
        await processes.spawn(launch)
    assert await events_of(pair.laptop, "processes.spawn") == []


async def test_variables_that_choose_what_runs_are_refused(laptop: tuple[Pair, Processes]) -> None:
    pair, processes = laptop
    for name in ("LD_PRELOAD", "PATH", "BASH_ENV"):
        with pytest.raises(PermissionDenied):
            await processes.spawn(Launch((SH, "-c", "touch mark"), {name: "/tmp/x"}))
    assert not (pair.laptop.root / "mark").exists()


async def test_it_runs_inside_the_boundary_of_its_host_and_the_history_says_so(
    laptop: tuple[Pair, Processes], tmp_path: Path
) -> None:
    pair, processes = laptop
    child = await processes.spawn(sh(f"touch inside; touch {tmp_path}/outside; echo secret-word"))
    assert not (pair.laptop.root / "inside").exists()
    child.go()
    assert await read_all(child.stdout) == b"secret-word\n"
    await child.wait()
    let_go(child)
    assert (pair.laptop.root / "inside").exists()
    assert not (tmp_path / "outside").exists()
    (event,) = await events_of(pair.laptop, "processes.spawn")
    assert (event["ok"], event["capability"]) == (True, "command:run,process:manage")
    assert event["boundary"] not in (None, "none")
    assert "secret-word" not in str(event)


async def test_a_handle_is_of_use_only_in_its_own_scope(laptop: tuple[Pair, Processes]) -> None:
    pair, processes = laptop
    child = await processes.spawn(sh("sleep 60"))
    child.go()
    handle = next(iter(pair.laptop.app.services.use(PeerChildren)._held))
    link = await pair.routes.link("laptop")
    for method in ("processes.kill", "processes.go", "processes.usage"):
        with pytest.raises(ProcessNotFound):
            await link.ask("other", method, {"process": handle}, is_safe=True)
    assert pair.laptop.app.services.use(PeerChildren).is_busy()
    child.kill()
    assert (await child.wait()).exit_code == 137
    let_go(child)


async def test_output_waits_for_its_reader_and_nothing_of_it_is_lost(laptop: tuple[Pair, Processes]) -> None:
    pair, processes = laptop
    count = 500
    script = f"i=0; while [ $i -lt {count} ]; do head -c 65536 /dev/zero; i=$((i+1)); echo $i > at; done; echo end >&2"
    child = await processes.spawn(sh(script))
    child.go()
    place = pair.laptop.root / "at"
    seen = [0, -1]

    def stands_still() -> bool:
        # Twenty readings without a change: it waits for a reader, who reads nothing yet.
        told = place.read_text().strip() if place.exists() else ""
        seen[0], seen[1] = (seen[0] + 1, seen[1]) if told and int(told) == seen[1] else (0, int(told or -1))
        return seen[0] >= 20

    await until(stands_still)
    assert seen[1] < 100
    assert await read_all(child.stdout) == bytes(65_536 * count)
    assert child.stderr is not None
    assert await read_all(child.stderr) == b"end\n"
    assert await child.wait() == Ended(0)
    let_go(child)


async def test_errors_are_read_while_nobody_reads_the_output(laptop: tuple[Pair, Processes]) -> None:
    _, processes = laptop
    child = await processes.spawn(sh("head -c 9000000 /dev/zero & head -c 20000 /dev/zero >&2; wait"))
    child.go()
    assert child.stderr is not None
    told = b""
    with anyio.fail_after(30):
        while len(told) < 20_000:
            await anyio.wait_readable(child.stderr)
            told += os.read(child.stderr, 65_536)
    assert len(await read_all(child.stdout)) == 9_000_000
    assert await read_all(child.stderr) == b""
    await child.wait()
    let_go(child)


async def test_who_closes_the_output_ends_the_program_that_writes_to_it(laptop: tuple[Pair, Processes]) -> None:
    _, processes = laptop
    child = await processes.spawn(Launch(("/usr/bin/yes",), {}))
    child.go()
    await anyio.wait_readable(child.stdout)
    os.close(child.stdout)
    with anyio.fail_after(30):
        assert (await child.wait()).exit_code == 141
    assert child.stderr is not None
    os.close(child.stderr)


async def test_a_cut_link_loses_and_doubles_no_byte(laptop: tuple[Pair, Processes], relay: Relay) -> None:
    pair, _ = laptop
    processes = (await pair.routes.remote_computer("laptop", "app")).processes
    sent = noise(3_000_000)
    child = await processes.spawn(Launch(("/bin/cat",), {}, stdin="pipe"))
    child.go()
    reading = asyncio.ensure_future(read_all(child.stdout))
    for at in range(0, len(sent), 500_000):
        left = memoryview(sent[at : at + 500_000])
        while left:
            assert child.stdin is not None
            await anyio.wait_writable(child.stdin)
            left = left[os.write(child.stdin, left) :]
        if at in (500_000, 1_500_000):
            relay.cut()
    assert child.stdin is not None
    os.close(child.stdin)
    child.stdin = None
    assert await reading == sent
    assert (await child.wait(), relay.cuts) == (Ended(0), 2)
    assert len(await events_of(pair.laptop, "processes.spawn")) == 1
    let_go(child)


async def test_input_that_comes_again_is_given_once(laptop: tuple[Pair, Processes]) -> None:
    pair, processes = laptop
    child = await processes.spawn(Launch(("/bin/cat",), {}, stdin="pipe"))
    child.go()
    (handle,) = pair.laptop.app.services.use(PeerChildren)._held
    link = await pair.routes.link("laptop")

    async def feed(at: int, data: bytes, is_last: bool = False) -> int:
        params = {"process": handle, "at": at, "data": data, "is_last": is_last}
        taken: int = (await link.ask("app", "processes.feed", params, is_safe=True)).value
        return taken

    assert [await feed(0, b"one"), await feed(0, b"one"), await feed(0, b"onetwo"), await feed(3, b"two")] == [
        3,
        3,
        6,
        3,
    ]
    for at in (7, 9, -1):
        with pytest.raises(LinkError):
            await feed(at, b"x")
    assert [await feed(6, b"", True), await feed(6, b"", True)] == [0, 0]
    assert await read_all(child.stdout) == b"onetwo"
    assert await child.wait() == Ended(0)
    let_go(child)


async def test_more_input_than_keys_are_remembered_arrives_whole(laptop: tuple[Pair, Processes]) -> None:
    _, processes = laptop
    child = await processes.spawn(sh("wc -c", stdin="pipe"))
    child.go()
    assert child.stdin is not None
    left = memoryview(bytes(4_000_000))
    while left:
        await anyio.wait_writable(child.stdin)
        # Small writes, one call each.
        left = left[os.write(child.stdin, left[:4000]) :]
    os.close(child.stdin)
    child.stdin = None
    assert (await read_all(child.stdout)).strip() == b"4000000"
    await child.wait()
    let_go(child)


async def test_a_program_nobody_watches_any_more_is_ended(laptop: tuple[Pair, Processes], relay: Relay) -> None:
    pair, _ = laptop
    processes = (await pair.routes.remote_computer("laptop", "app")).processes
    child = await processes.spawn(sh("echo $$ > pid; sleep 60; touch late"))
    child.go()
    await until((pair.laptop.root / "pid").exists)
    held = pair.laptop.app.services.use(PeerChildren)
    relay.stop()
    await until(lambda: not held.is_busy())
    assert not (pair.laptop.root / "late").exists()
    let_go(child)


async def test_an_unpaired_machine_has_no_program_left_here(laptop: tuple[Pair, Processes]) -> None:
    pair, processes = laptop
    child = await processes.spawn(sh("echo begun; sleep 60"))
    child.go()
    await anyio.wait_readable(child.stdout)
    await pair.server.forget("desk-id")
    assert not pair.laptop.app.services.use(PeerChildren).is_busy()
    let_go(child)


async def test_a_terminal_has_the_size_it_was_given(laptop: tuple[Pair, Processes]) -> None:
    _, processes = laptop
    # The size and typed text travel in streams of their own, so the program waits for the size itself.
    script = 'stty size; until [ "$(stty size)" = "20 70" ]; do sleep 0.02; done; stty size'
    child = await processes.spawn(sh(script, pty=PtySize(90, 30)))
    child.go()
    child.resize(PtySize(70, 20))
    printed = (await read_all(child.stdout)).split()
    assert printed[-2:] == [b"20", b"70"] and printed[:2] in ([b"30", b"90"], [b"20", b"70"])
    await child.wait()
    let_go(child)


async def test_a_program_that_is_not_there_has_ended_streams_and_leaves_no_descriptor(
    laptop: tuple[Pair, Processes],
) -> None:
    _, processes = laptop
    counts = []
    # The first time, what starts programs is itself started.
    for _ in range(3):
        child = await processes.spawn(Launch(("/bin/no-such-program",), {}, stdin="pipe"))
        child.go()
        assert await read_all(child.stdout) == b""
        assert (await child.wait()).exit_code == 127
        let_go(child)
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[1] == counts[2]


async def test_nothing_is_left_open_after_many_programs(laptop: tuple[Pair, Processes]) -> None:
    pair, processes = laptop
    held = pair.laptop.app.services.use(PeerChildren)

    async def once() -> None:
        child = await processes.spawn(Launch(("/bin/echo", "x"), {}, stdin="pipe"))
        child.go()
        assert await read_all(child.stdout) == b"x\n"
        await child.wait()
        let_go(child)

    await once()
    await until(lambda: not held.is_busy())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        await once()
    await until(lambda: not held.is_busy())
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


async def test_nothing_it_was_given_or_said_is_stored_on_either_machine(laptop: tuple[Pair, Processes]) -> None:
    pair, processes = laptop
    script = "read line; echo said-$line-$DEBUG; exit 3"
    child = await processes.spawn(
        Launch((SH, "-c", script, "argument-kept-secret"), {"DEBUG": "variable-kept-secret"}, stdin="pipe")
    )
    child.go()
    assert child.stdin is not None
    os.write(child.stdin, b"typed-kept-secret\n")
    assert await read_all(child.stdout) == b"said-typed-kept-secret-variable-kept-secret\n"
    assert (await child.wait()).exit_code == 3
    let_go(child)
    with pytest.raises(LinkError):
        await processes.spawn(Launch((SH, "-c", "refused-kept-secret"), {"LD_PRELOAD": "refused-kept-secret"}))
    assert len(await events_of(pair.laptop, "processes.feed")) == 1
    for home in (pair.laptop.home, pair.desk.home):
        for path in home.rglob("*"):
            assert not path.is_file() or b"kept-secret" not in path.read_bytes(), path


async def test_what_it_uses_is_known_after_it_was_asked(laptop: tuple[Pair, Processes]) -> None:
    _, processes = laptop
    child = await processes.spawn(sh("sleep 60"))
    child.go()
    await until(lambda: child.usage() is not None)
    child.kill()
    await child.wait()
    let_go(child)


async def test_one_machine_holds_so_many_programs_and_no_more(laptop: tuple[Pair, Processes]) -> None:
    pair, processes = laptop
    children = [await processes.spawn(sh("touch mark")) for _ in range(16)]
    with pytest.raises(LimitExceeded):
        await processes.spawn(sh("touch mark"))
    await processes.aclose()
    assert not (pair.laptop.root / "mark").exists()
    for child in children:
        let_go(child)


async def test_stopping_everything_stops_the_programs_of_paired_machines(laptop: tuple[Pair, Processes]) -> None:
    """As `pause --stop` does, for all principals at once."""
    pair, processes = laptop
    child = await processes.spawn(sh("echo begun; sleep 60"))
    child.go()
    await anyio.wait_readable(child.stdout)
    assert await pair.laptop.app.services.end_of(None) == 1
    assert not pair.laptop.app.services.use(PeerChildren).is_busy()
    let_go(child)
