"""One writer at a time: an advisory lock between the processes that share a state folder."""

try:
    import fcntl

    def acquire(handle: int) -> None:
        """Wait for the lock of this open file."""
        fcntl.flock(handle, fcntl.LOCK_EX)

    def release(handle: int) -> None:
        """Let the next writer go."""
        fcntl.flock(handle, fcntl.LOCK_UN)

except ImportError:  # pragma: no cover - Windows has byte-range locks instead
    import msvcrt
    import os

    def acquire(handle: int) -> None:
        """Wait for the lock of this open file."""
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]

    def release(handle: int) -> None:
        """Let the next writer go."""
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
