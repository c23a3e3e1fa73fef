"""Processes without the launcher, as macOS has them: started by the gate, ended with their group."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from computer_linker.computer.facets.processes import Launch
from computer_linker.computer.local.portable.processes import PortableProcesses
from computer_linker.providers.processes.runner import Limits, _Run
from computer_linker.providers.processes.streams import collect
from support.waiting import until

pytestmark = pytest.mark.anyio

SH = "/bin/sh"


@pytest.fixture
async def processes() -> AsyncIterator[PortableProcesses]:
    processes = PortableProcesses()
    yield processes
    await processes.aclose()


async def test_it_runs_in_the_held_folder_once_the_gate_opens(processes: PortableProcesses, tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    child = await processes.spawn(Launch((SH, "-c", "pwd; echo oops >&2; exit 3"), {"PATH": "/bin"}, cwd_fd=fd))
    os.close(fd)
    child.go()
    with anyio.fail_after(20):
        out, err, ended = await collect(child, 10_000)
    assert (out.decode().strip(), err, ended.exit_code) == (str(tmp_path), b"oops\n", 3)


async def test_input_is_given(processes: PortableProcesses) -> None:
    child = await processes.spawn(Launch(("/bin/cat",), {}, stdin="pipe"))
    with anyio.fail_after(20):
        outcome = await _Run(child, Limits(10, 1000), None).to_the_end(b"hello")
    assert outcome.stdout == "hello"


async def test_what_is_killed_before_its_gate_opens_never_runs(processes: PortableProcesses, tmp_path: Path) -> None:
    child = await processes.spawn(Launch(("/usr/bin/touch", str(tmp_path / "marker")), {}))
    child.kill()
    child.go()
    assert (await child.wait()).signal == "SIGKILL"
    assert not (tmp_path / "marker").exists()
    for fd in (child.stdout, child.stderr):
        assert fd is not None
        os.close(fd)


async def test_the_group_ends_with_it(processes: PortableProcesses) -> None:
    child = await processes.spawn(Launch((SH, "-c", "sleep 60 & echo $!; wait"), {"PATH": "/usr/bin:/bin"}))
    child.go()
    with anyio.fail_after(20):
        await anyio.wait_readable(child.stdout)
        inner = int(os.read(child.stdout, 100))
        child.signal("term")
        await child.wait()
        await until(
            lambda: not Path(f"/proc/{inner}").exists() or "(sleep) Z" in Path(f"/proc/{inner}/stat").read_text()
        )
    for fd in (child.stdout, child.stderr):
        assert fd is not None
        os.close(fd)


async def test_a_program_that_is_none_is_told(processes: PortableProcesses) -> None:
    child = await processes.spawn(Launch(("/no/such/program",), {}))
    child.go()
    _, _, ended = await collect(child, 1000)
    assert ended.exit_code == 127 and ended.reason is not None
