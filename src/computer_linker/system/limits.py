"""Bounds on the memory and processor time of a process, and what it has used."""

import sys
from contextlib import suppress

if sys.platform == "win32":
    from computer_linker.system.windows.jobs import cap_memory, limit_this_process, own_use
else:
    import resource

    def limit_this_process(memory: int, seconds: int) -> None:
        """Bound this process: memory in bytes, processor time in seconds, no file and no core dump."""
        for kind, most in (
            (resource.RLIMIT_DATA, memory),
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
        ):
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))

    def own_use() -> tuple[int, float]:
        """The most memory in bytes that this process had, and its processor seconds."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_maxrss * _RSS_UNIT, used.ru_utime + used.ru_stime

    def cap_memory(pid: int, size: int) -> None:
        """Bound the memory of another process. Linux alone can do so from outside, so elsewhere nothing happens."""
        if sys.platform == "linux":
            with suppress(ProcessLookupError, PermissionError):
                resource.prlimit(pid, resource.RLIMIT_DATA, (size, size))

    _RSS_UNIT = 1 if sys.platform == "darwin" else 1024
    """Bytes on macOS, KiB on Linux."""


__all__ = ["cap_memory", "limit_this_process", "own_use"]
