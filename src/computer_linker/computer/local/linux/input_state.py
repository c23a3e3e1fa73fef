"""Whether a program waits for input, by the system calls its threads are blocked in, and who echoes what is typed."""

import os
import stat
import termios

from computer_linker.computer.facets.processes import Echo
from computer_linker.system.proc_files import descendants, is_sandbox_program, read, stat_fields

_MAX_PROCESSES, _MAX_THREADS = 256, 64
_READS, _POLLS = {
    "x86_64": (frozenset({0, 17, 19}), frozenset({7, 23, 232, 270, 271, 281, 441})),
    "aarch64": (frozenset({63, 65, 67}), frozenset({22, 72, 73, 441})),
}.get(os.uname().machine, (frozenset[int](), frozenset[int]()))
"""read, pread64, readv; and poll, select, epoll_wait and their variants."""
_TERMINALS = range(136, 144)
"""Major device numbers of pseudo terminals."""


def echo_of(terminal: int) -> Echo:
    """Who echoes typed text: the terminal, none (a password), or, where the program reads key by key, perhaps it."""
    mode = _local_mode(terminal)
    if mode is None:
        return "none"
    if mode & termios.ECHO:
        return "terminal"
    return "none" if mode & termios.ICANON else "program"


def waits_for_input(pid: int, stdin: int | None, *, is_pty: bool, is_wrapped: bool) -> bool | None:
    """True when a foreground process of this tree is blocked reading its input; None when that cannot be determined.

    A program that polls counts as waiting only where it set its terminal to read key by key: elsewhere it may wait for
    anything. `is_wrapped`: the process is a sandbox program, whose own processes do not count.
    """
    if not _READS or stdin is None:
        return None
    pipe = 0 if is_pty else _inode(stdin)
    mode = _local_mode(stdin) if is_pty else None
    by_key = mode is not None and not mode & termios.ICANON
    found: set[bool | None] = set()
    for process in _foreground(pid, is_pty, is_wrapped):
        found |= {_is_reading(process, thread, pipe, by_key=by_key) for thread in _threads(process)}
    if True in found:
        return True
    return None if None in found or not found else False


def _foreground(pid: int, is_pty: bool, is_wrapped: bool) -> list[int]:
    """The processes of the tree; on a terminal those of its foreground group."""
    tree = [pid, *descendants(pid)][:_MAX_PROCESSES]
    if is_wrapped:
        tree = [each for each in tree if not is_sandbox_program(each, pid)]
    if not is_pty:
        return tree
    fields = {each: stat_fields(each) for each in tree}
    front = [each for each, known in fields.items() if len(known) > 5 and known[2] == known[5] and known[4] != b"0"]
    return front or tree


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")[:_MAX_THREADS]  # noqa: PTH208  # names only
    except OSError:
        return []


def _is_reading(pid: int, thread: str, pipe: int, *, by_key: bool) -> bool | None:
    """Whether one thread is blocked reading the input; None where the system does not show it or it may be."""
    words = read(f"/proc/{pid}/task/{thread}/syscall").split()
    if not words:
        return None if os.path.exists(f"/proc/{pid}/task/{thread}") else False  # noqa: PTH110
    if not words[0].isdigit() or len(words) < 2:
        # `running`, or a thread that is in no system call.
        return False
    call = int(words[0])
    if call in _POLLS:
        return True if by_key else None
    return call in _READS and _is_input(pid, int(words[1], 16), pipe)


def _is_input(pid: int, fd: int, pipe: int) -> bool | None:
    try:
        found = os.stat(f"/proc/{pid}/fd/{fd}")  # noqa: PTH116
    except OSError:
        return None
    if pipe:
        return stat.S_ISFIFO(found.st_mode) and found.st_ino == pipe
    device = found.st_rdev
    is_terminal = os.major(device) in _TERMINALS or (os.major(device), os.minor(device)) == (5, 0)
    return stat.S_ISCHR(found.st_mode) and is_terminal


def _inode(fd: int) -> int:
    try:
        return os.fstat(fd).st_ino
    except OSError:
        return -1


def _local_mode(terminal: int) -> int | None:
    try:
        mode: int = termios.tcgetattr(terminal)[3]
    except (OSError, termios.error):
        return None
    return mode
