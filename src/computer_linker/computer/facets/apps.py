"""Apps: installed and running applications; opening, closing and focusing them."""

from collections.abc import Sequence
from typing import Protocol

from computer_linker.model.base import Model


class App(Model):
    """An installed application, and its process ids where it runs."""

    id: str
    name: str
    pids: list[int] = []
    windows: list[str] = []
    """The ids of its windows."""


class Apps(Protocol):
    """The applications a person could start."""

    async def list(self, *, running_only: bool = False) -> list[App]:
        """The installed applications by name, and running ones without a desktop entry."""
        ...

    async def open(self, app: str, arguments: Sequence[str] = ()) -> App:
        """Start an installed application (its id or name) with files or addresses; returns once its window shows.

        Raises:
            NotFound: no installed application has this id or name.
        """
        ...

    async def close(self, app: str) -> bool:
        """Ask all its windows to close; True once they are gone."""
        ...

    async def focus(self, app: str) -> App:
        """Bring its topmost window to the front."""
        ...
