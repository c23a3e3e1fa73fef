"""The scopes' roots as held directory descriptors."""

from dataclasses import dataclass
from pathlib import Path

from computer_linker.computer.local.faults import fault
from computer_linker.config.runtime import state_inside
from computer_linker.errors import NotFound, PathOutOfScope
from computer_linker.home import is_marked
from computer_linker.system import descriptor_path, os

HOLD = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Root:
    """One held root: its descriptor, its identity, and its real path."""

    descriptor: int
    device: int
    inode: int
    real: str
    closed: tuple[str, ...] | None
    """The path of the service's own state beneath this root, if any: never opened through a scope."""

    def state_above(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """The state folder of a service that a path is or lies in, by the mark that it carries; None for another path."""
        above = (parts[:size] for size in range(len(parts) + 1))
        return next((folder for folder in above if is_marked(self.descriptor, "/".join(folder))), None)


class Roots:
    """Roots by their configured path, opened once and held."""

    def __init__(self, state: Path | None = None) -> None:
        self._state = state
        self._held: dict[str, Root] = {}

    def hold(self, path: str) -> Root:
        """The held root. Raises when the folder does not exist, or when the name resolves to another path than before."""
        held = self._held.get(path)
        try:
            now = os.stat(path)
        except OSError as error:
            if isinstance(error, FileNotFoundError | NotADirectoryError):
                raise NotFound(
                    "The scope's folder does not exist (any more). Its owner can put it back, or change the scope.",
                    hint="computer-linker doctor names the folder and the command that helps",
                ) from error
            raise fault(error, "The scope's folder") from error
        if held is not None and (held.device, held.inode) == (now.st_dev, now.st_ino):
            return held
        return self._pin(path, held)

    @property
    def surround_state(self) -> bool:
        """True when the service's state lies in a root in use: files moved there stay within a command's mount."""
        return any(root.closed is not None for root in list(self._held.values()))

    def protect(self, state: Path) -> None:
        """Never open the service's own state through a scope that contains it."""
        self._state = state
        self.close()

    def close(self) -> None:
        for root in self._held.values():
            os.close(root.descriptor)
        self._held.clear()

    def _pin(self, path: str, before: Root | None) -> Root:
        try:
            descriptor = os.open(path, HOLD)
        except OSError as error:
            if isinstance(error, NotADirectoryError):
                raise NotFound("The scope's root is not a folder.") from error
            raise fault(error, "The scope's folder") from error
        now = os.fstat(descriptor)
        real = place_of(descriptor, path)
        # A folder recreated at the same path is the owner's; a name that now resolves elsewhere may be an attacker's. The config
        # contains resolved paths, so one with a link in it has changed since it was read.
        expected = before.real if before is not None else path.rstrip("/") if self._state is not None else real
        if real != (expected or "/"):
            os.close(descriptor)
            raise PathOutOfScope(
                "The scope's folder was replaced by something that lies elsewhere, so nothing in it is opened. "
                "Restart the service if that was intended."
            )
        if before is not None:
            os.close(before.descriptor)
        root = Root(descriptor, now.st_dev, now.st_ino, real, self._closed_in(real))
        self._held[path] = root
        return root

    def _closed_in(self, real: str) -> tuple[str, ...] | None:
        if self._state is None:
            return None
        inside = state_inside(real, Path(os.path.realpath(self._state)))
        return None if inside is None else Path(inside).parts


def place_of(descriptor: int, path: str) -> str:
    """The real path of the opened folder from the kernel; where it does not tell, the path is resolved again."""
    try:
        return descriptor_path(descriptor)
    except OSError:
        return os.path.realpath(path)
