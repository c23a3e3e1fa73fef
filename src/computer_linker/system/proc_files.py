"""Reading /proc about other processes with few imports (the launcher uses this)."""

import os

SIGKILL, SIGSTOP = 9, 19


def children(pid: int) -> list[int]:
    return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]


def session_of(pid: int) -> int:
    fields = stat_fields(pid)
    return int(fields[3]) if len(fields) > 3 else 0


def origin_of(pid: int) -> tuple[int, int] | None:
    """A process's parent and start time; None when it has ended. Pid and start time together identify one process."""
    fields = stat_fields(pid)
    return (int(fields[1]), int(fields[19])) if len(fields) > 19 else None


def stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat after the program's name; empty when the process has ended."""
    # The name is in brackets and may itself contain spaces and brackets.
    return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def write(path: str, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def read(path: str) -> bytes:
    found = b""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return found
    try:
        while more := os.read(fd, 65_536):
            found += more
    except OSError:
        return b""
    finally:
        os.close(fd)
    return found


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = children(pid)
    while waiting and len(found) < 100_000:
        child = waiting.pop()
        found.append(child)
        waiting.extend(children(child))
    return found


def is_sandbox_program(pid: int, outer: int) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/exe", f"/proc/{outer}/exe")  # noqa: PTH121  # pathlib is slow to import
    except OSError:
        return False


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants. They are stopped first, since a stopped process cannot fork."""
    stopped: set[int] = set()
    for _ in range(100):
        found = {pid, *descendants(pid)}
        if found <= stopped:
            break
        for inner in found - stopped:
            send(inner, SIGSTOP)
        stopped |= found
    for inner in stopped:
        send(inner, SIGKILL)


def send(pid: int, number: int) -> None:
    if pid <= 0:
        # Such a number addresses a process group.
        return
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def send_to_group(pid: int, number: int) -> None:
    """Signal the group a child leads, or the child itself when it has not created its group yet."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        send(pid, number)
