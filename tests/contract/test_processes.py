"""The processes facet's promises."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.facets.processes import Child, Ended, Launch, Processes
from computer_linker.computer.local.linux.processes import LinuxProcesses
from computer_linker.computer.local.portable.processes import PortableProcesses
from computer_linker.computer.simulated.processes import SimulatedProcesses
from support.far import Far, far_process, reached
from support.road import folder_scope

pytestmark = pytest.mark.anyio
ENV = {"PATH": "/usr/bin:/bin", "MARK": "here"}
_KINDS = {"simulated": SimulatedProcesses, "linux": LinuxProcesses, "portable": PortableProcesses}
_FAR: dict[str, dict[str, Any]] = {
    "remote": {},
    "remote-open": {"sandbox": "off", "allowedCommands": ["echo *", "env", "cat", "false", "sleep *"]},
}
"""Over a link, behind the far machine's own boundary and without one."""


@pytest.fixture(scope="module")
def far_local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    """This very system behind a service in another process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with far_process(tmp_path_factory.mktemp("far-local"), "local") as far:
        signal.signal(signal.SIGINT, before)
        yield far


@pytest.fixture(params=[*_KINDS, *_FAR])
async def processes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Processes]:
    if request.param in _FAR:
        root = tmp_path / "far-root"
        root.mkdir()
        # The owner there lets callers set what these tests set.
        scope = folder_scope(root, environment=["PATH", "MARK"], **_FAR[request.param])
        async with reached(request.getfixturevalue("far_local"), tmp_path, [scope]) as computer:
            yield computer.processes
            await computer.processes.aclose()
        return
    # A worker of pytest-xdist ignores interrupts, and a child would inherit that; the service handles them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    opened: Processes = _KINDS[request.param]()
    yield opened
    await opened.aclose()
    signal.signal(signal.SIGINT, before)


async def everything(fd: int) -> bytes:
    """All that comes until the end."""
    pieces: list[bytes] = []
    with anyio.fail_after(20):
        while True:
            await anyio.wait_readable(fd)
            piece = os.read(fd, 65_536)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


async def ended(child: Child) -> Ended:
    with anyio.fail_after(20):
        return await child.wait()


def let_go(child: Child) -> None:
    for fd in {child.stdin, child.stdout, child.stderr} - {None}:
        os.close(fd)  # type: ignore[arg-type]  # None was taken out


@pytest.mark.parametrize(
    ("argv", "printed"), [(("/bin/echo", "two words", "é"), "two words é\n"), (("/usr/bin/env",), "MARK=here")]
)
async def test_a_program_gets_its_arguments_and_environment_exactly(
    processes: Processes, argv: tuple[str, ...], printed: str
) -> None:
    child = await processes.spawn(Launch(argv, ENV))
    child.go()
    assert printed in (await everything(child.stdout)).decode()
    assert await ended(child) == Ended(0)
    let_go(child)


async def test_nothing_runs_before_the_gate_opens(processes: Processes) -> None:
    child = await processes.spawn(Launch(("/bin/echo", "ran"), ENV))
    with anyio.move_on_after(0.2) as waited:
        await anyio.wait_readable(child.stdout)
    assert waited.cancelled_caught
    child.go()
    assert await everything(child.stdout) == b"ran\n"
    await ended(child)
    let_go(child)


async def test_what_is_sent_is_read_and_the_end_is_told(processes: Processes) -> None:
    child = await processes.spawn(Launch(("/bin/cat",), ENV, stdin="pipe"))
    child.go()
    assert child.stdin is not None
    os.write(child.stdin, "Zoë\n".encode())
    os.close(child.stdin)
    child.stdin = None
    assert await everything(child.stdout) == "Zoë\n".encode()
    assert await ended(child) == Ended(0)
    let_go(child)


async def test_a_failure_has_its_exit_code(processes: Processes) -> None:
    child = await processes.spawn(Launch(("/bin/false",), ENV))
    told: list[Ended] = []
    child.when_ended(told.append)
    child.go()
    assert await ended(child) == Ended(1)
    assert told == [Ended(1)]
    let_go(child)


@pytest.mark.parametrize(("how", "code"), [("term", 143), ("kill", 137), ("int", 130)])
async def test_a_signal_ends_it_and_is_named(processes: Processes, how: str, code: int) -> None:
    child = await processes.spawn(Launch(("/bin/sleep", "60"), ENV))
    child.go()
    child.signal(how)  # type: ignore[arg-type]  # one of the names
    assert await ended(child) == Ended(code, f"SIG{how.upper()}")
    # Once ended, nothing more is sent to whoever has its number by then.
    child.signal("kill")
    child.kill()
    let_go(child)


async def test_a_program_that_is_not_there_is_said(processes: Processes) -> None:
    child = await processes.spawn(Launch(("/bin/no-such-program",), ENV))
    child.go()
    said = await ended(child)
    assert (said.exit_code, said.reason is not None) == (127, True)
    let_go(child)


async def test_closing_ends_what_was_started(processes: Processes) -> None:
    child = await processes.spawn(Launch(("/bin/sleep", "60"), ENV))
    child.go()
    await processes.aclose()
    assert (await ended(child)).exit_code == 137
    let_go(child)
