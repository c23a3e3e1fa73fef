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
    "forged marks": """
marks = [str(number) for number in range(1, 40)]
for name in os.listdir("/proc"):
    try:
        entries = open(f"/proc/{name}/environ", "rb").read().split(b"\\0") if name.isdigit() else []
    except OSError:
        continue
    marks += [entry[20:].decode() for entry in entries if entry.startswith(b"COMPUTER_LINKER_RUN=")
              and entry[20:].decode() != os.environ["COMPUTER_LINKER_RUN"] and READS]
for mark in dict.fromkeys(marks):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            stay({"COMPUTER_LINKER_RUN": mark})
        os._exit(0)
wait_for(len(set(marks)))
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


def program(trick: str, token: str, *, reads_marks: bool = True) -> list[str]:
    """The argv of a trick."""
    text = _LEAVE + TRICKS[trick].replace("READS", str(reads_marks))
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
