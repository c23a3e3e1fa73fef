"""Programs that try to leave a process behind; each puts its token into the command line of what it leaves."""

import os
from pathlib import Path

_LEAVE = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
token, others = sys.argv[1], sys.argv[2:]
def stay(env=None):
    os.execve(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(120)", token],
              dict(os.environ) if env is None else env)
def wait_for(count=1):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = 0
        for name in os.listdir("/proc"):
            try:
                found += name.isdigit() and open(f"/proc/{name}/cmdline").read().endswith(f"time.sleep(120)\\0{token}\\0")
            except OSError:
                pass
        if found >= count:
            return
        time.sleep(0.01)
"""
_ENDING = 0x4 | 0x400
"""PF_EXITING and PF_SIGNALED, of include/linux/sched.h."""
TRICKS = {
    "double fork": """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        stay()
    os._exit(0)
wait_for()
""",
    "cleared environment": """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        stay({})
    os._exit(0)
wait_for()
""",
    "the numbers of others": """
import resource
def number(name):
    rows = [line.split() for line in open(f"/proc/{name}/limits")]
    rows = {" ".join(row[1:3]): row[-2] for row in rows}
    return rows["file locks"], rows["resident set"]
pairs = set()
for name in os.listdir("/proc"):
    try:
        if name.isdigit() and "unlimited" not in number(name):
            pairs.add(number(name))
    except OSError:
        continue
locks, resident = number("self")
pairs |= {(str(int(locks) - step), str(int(resident) + step)) for step in range(1, 8) if FORGES and "unlimited" not in (locks, resident)}
for pair in pairs if FORGES else ():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for which, value in zip((10, resource.RLIMIT_RSS), map(int, pair)):
                try:
                    resource.setrlimit(which, (value, value))
                except (ValueError, OSError):
                    pass
            stay()
        os._exit(0)
wait_for(len(pairs) if FORGES else 0)
""",
    "a subreaper of its own": """
if os.fork() == 0:
    os.setsid()
    libc.prctl(36, 1, 0, 0, 0)
    for _ in range(3):
        if os.fork() == 0:
            if os.fork() == 0:
                os.setsid()
                stay({})
            os._exit(0)
    time.sleep(120)
    stay({})
wait_for(3)
""",
    "a fork storm at its end": """
for _ in range(8):
    if os.fork() == 0:
        os.setsid()
        os.environ.clear()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            # The parent goes at once, so that the process to end is always another one.
            if os.fork():
                os._exit(0)
            time.sleep(0.0005)
time.sleep(0.1)
""",
    "traced by another": """
child = os.fork()
if child == 0:
    os.setsid()
    stay({})
wait_for()
if os.fork() == 0:
    os.setsid()
    libc.ptrace(0x4206, child, 0, 0)
    stay({})
wait_for(2)
""",
}


def program(trick: str, token: str, *, forges: bool = True) -> list[str]:
    """The argv of a trick."""
    text = _LEAVE + TRICKS[trick].replace("FORGES", str(forges))
    return ["/usr/bin/python3", "-S", "-c", text, token]


def left(token: str) -> list[int]:
    """Processes anywhere on this machine that carry the token."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes().split(b"\0") and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def is_killed(pid: int) -> bool:
    """Whether a process has been sent SIGKILL, or has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        flags = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[6])
    except (FileNotFoundError, ProcessLookupError):
        return True
    pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(each & 1 << 8 for each in pending) or bool(flags & _ENDING)
