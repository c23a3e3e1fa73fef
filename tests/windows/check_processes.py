"""Runs inside Windows Python (under wine, or on Windows): processes in job objects, and that they end as one."""

import ctypes
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from computer_linker.computer.facets.processes import Launch
from computer_linker.computer.local.windows.processes import WindowsProcesses
from computer_linker.errors import LinkError
from computer_linker.providers.processes.streams import Pump, collect

ENV = {name: os.environ[name] for name in ("SYSTEMROOT", "WINDIR", "PATH", "TEMP") if name in os.environ}
SLEEP = "import time; time.sleep(60)"
TREE = f"import subprocess, sys, time; print(subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).pid, flush=True); time.sleep(60)"


def python(code: str, **more: Any) -> Launch:
    return Launch((sys.executable, "-c", code), ENV, **more)


def runs(pid: int) -> bool:
    kernel: Any = ctypes.WinDLL("kernel32")
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(0x100000, False, pid)
    if not handle:
        return False
    ended = kernel.WaitForSingleObject(ctypes.c_void_p(handle), 0) == 0
    kernel.CloseHandle(ctypes.c_void_p(handle))
    return not ended


async def output(processes: WindowsProcesses) -> None:
    child = await processes.spawn(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    child.go()
    out, err, ended = await collect(child, 10_000)
    assert (out.split(), err.split(), ended.exit_code) == ([b"out"], [b"err"], 3), (out, err, ended)


async def gate(processes: WindowsProcesses) -> None:
    marker = os.path.join(os.environ.get("TEMP", "."), f"marker-{os.getpid()}")
    child = await processes.spawn(python(f"open({marker!r}, 'w')"))
    # One that was started later and let go has ended by now; the first still waits.
    other = await processes.spawn(python("pass"))
    other.go()
    await collect(other, 100)
    assert not os.path.exists(marker)
    child.kill()
    await child.wait()
    assert not os.path.exists(marker)
    os.close(child.stdout)


async def tree(processes: WindowsProcesses) -> None:
    child = await processes.spawn(python(TREE))
    told: list[bytes] = []
    heard = anyio.Event()
    pump = Pump(child.stdout, lambda data: (told.append(bytes(data)), heard.set())[1])
    child.go()
    await heard.wait()
    inner = int(told[0])
    assert runs(inner) and runs(child.pid)
    usage = child.usage()
    assert usage is not None and usage.pids >= 2, usage
    child.kill()
    await child.wait()
    with anyio.fail_after(20):
        while runs(inner):
            await anyio.sleep(0.05)  # bounded above
    pump.close()


async def refusals(processes: WindowsProcesses) -> None:
    from computer_linker.computer.facets.processes import PtySize

    for launch in (python("1", pty=PtySize()), Launch(("Z:\\no\\such.exe",), ENV)):
        try:
            await processes.spawn(launch)
        except LinkError:
            continue
        raise AssertionError(launch)


CHECKS: list[Callable[[WindowsProcesses], Awaitable[None]]] = [output, gate, tree, refusals]


async def main() -> int:
    processes = WindowsProcesses()
    failed = 0
    for check in CHECKS:
        started = time.perf_counter()
        try:
            with anyio.fail_after(60):
                await check(processes)
            print(f"ok {check.__name__} {time.perf_counter() - started:.2f}s", flush=True)
        except Exception as error:  # each check is told by itself
            failed += 1
            print(f"FAILED {check.__name__}: {type(error).__name__} {error}", flush=True)
    await processes.aclose()
    return failed


if __name__ == "__main__":
    sys.exit(anyio.run(main))
