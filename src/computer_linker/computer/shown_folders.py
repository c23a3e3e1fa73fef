"""The folders that sandboxed programs see while they run.

A name is closed to a program by a mount at the place where it was when the program started. A folder that holds closed names and
comes from elsewhere would be open there. So such a change and the start of a program exclude each other.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from computer_linker.errors import Conflict


class ShownFolders:
    """Counts them by their paths. The lock is held by threads that change files, for one rename each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: Counter[str] = Counter()

    def show(self, paths: Iterable[str]) -> Callable[[], None]:
        """Count these folders as shown, before their names are read; call what is returned once the program has ended."""
        shown = [path.rstrip("/") for path in paths]
        with self._lock:
            self._shown.update(shown)

        def release() -> None:
            with self._lock:
                while shown:
                    path = shown.pop()
                    self._shown[path] -= 1
                    if not self._shown[path]:
                        del self._shown[path]

        return release

    def has(self, place: str) -> bool:
        """Whether a program that runs may have something open at `place`."""
        with self._lock:
            return any(place.startswith(f"{path}/") for path in self._shown)

    @contextmanager
    def unseen(self, place: str, shown: str) -> Iterator[None]:
        """Let no program start while a folder with closed names is put at `place`. Raises Conflict where one runs."""
        with self._lock:
            if any(place.startswith(f"{path}/") for path in self._shown):
                raise Conflict(
                    f"{shown} holds names that are closed to programs, and a program runs in the folder it would go to. "
                    "Try again when the program has ended.",
                    path=shown,
                )
            yield


SHOWN = ShownFolders()
