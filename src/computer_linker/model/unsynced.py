"""A file that has to be on the disk before something begins, handed to whoever can wait for that meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unsynced:
    """An open file with data that a power cut would still lose."""

    fd: int
    """Good until the event loop turns; who needs it longer duplicates it."""
    is_durable: Callable[[], None]
    """To be called once the file was synced."""
