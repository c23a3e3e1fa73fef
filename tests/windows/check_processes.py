"""Runs inside Windows Python (under wine, or on Windows): processes in job objects, and that they end as one."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from computer_linker.computer.facets.processes import Launch, ProcessLimits
from computer_linker.computer.local.windows.processes import WindowsProcesses
from computer_linker.errors import LinkError
from computer_linker.providers.processes.streams import Pump, collect
from computer_linker.system.limits import cap_memory

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


class WineCannot(Exception):
    """Wine took the order and does not carry it out."""


def is_wine() -> bool:
    return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


MANY = f"""
import subprocess, sys
started = []
for _ in range(4):
    try:
        started.append(subprocess.Popen([sys.executable, "-c", {SLEEP!r}]))
    except OSError:
        break
print(len(started), flush=True)
"""
LARGE = """
from computer_linker.system.limits import limit_this_process, own_use
limit_this_process(200 << 20, 60)
peak, seconds = own_use()
assert peak > 1 << 20 and seconds > 0, (peak, seconds)
try:
    held = bytearray(600 << 20)
    print("taken")
except MemoryError:
    print("refused")
"""


async def count(processes: WindowsProcesses) -> None:
    child = await processes.spawn(python(MANY, limits=ProcessLimits(processes=2)))
    child.go()
    out, err, _ = await collect(child, 10_000)
    if out.split() == [b"4"] and is_wine():
        raise WineCannot("wine before version 9 does not bound the number of a job's processes")
    assert out.split() in ([b"1"], []), (out, err)


async def own_limits(processes: WindowsProcesses) -> None:
    child = await processes.spawn(python(LARGE))
    child.go()
    out, err, _ = await collect(child, 10_000)
    if out.split() == [b"taken"] and is_wine():
        raise WineCannot("wine before version 9 does not bound the memory of a job's processes")
    assert out.split() == [b"refused"], (out, err)


async def cap_of_an_ended_process(processes: WindowsProcesses) -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait(60)
    # Its handle is still open here, so Windows still has the process.
    cap_memory(ended.pid, 1 << 30)


CHECKS: list[Callable[[WindowsProcesses], Awaitable[None]]] = [
    output,
    gate,
    tree,
    refusals,
    count,
    own_limits,
    cap_of_an_ended_process,
]


async def main() -> int:
    processes = WindowsProcesses()
    failed = 0
    for check in CHECKS:
        started = time.perf_counter()
        try:
            with anyio.fail_after(60):
                await check(processes)
            print(f"ok {check.__name__} {time.perf_counter() - started:.2f}s", flush=True)
        except WineCannot as cannot:
            print(f"skipped {check.__name__}: {cannot}", flush=True)
        except Exception as error:  # each check is told by itself
            failed += 1
            print(f"FAILED {check.__name__}: {type(error).__name__} {error}", flush=True)
    await processes.aclose()
    return failed


if __name__ == "__main__":
    sys.exit(anyio.run(main))
