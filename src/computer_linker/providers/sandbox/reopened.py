"""Names closed to a running program that were replaced on the disk: found by the scan, and closed again.

A name is closed by a mount on the file that is there. When that file is replaced by a rename, as editors and git do, or removed,
the kernel takes the mount away in every sandbox. No program inside can do that: a mount point cannot be renamed over there.
"""

import stat
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from computer_linker.computer.facets.processes import Confined, Mount
from computer_linker.providers.sandbox.boundary import Closed, Folder
from computer_linker.providers.sandbox.judge import Parts
from computer_linker.providers.sandbox.steps import stat_below


class Reopened(NamedTuple):
    """A name that is open to a program, and how it has to be closed."""

    shown: str
    name: Mount | None
    """None when nothing is there any more: removed from outside, or replaced, and then taken away by the program."""

    async def closed(self, program: Confined | None) -> str:
        """Close it again. Returns a sentence about it; empty where it was closed."""
        if self.name is None:
            return f"{self.shown} was removed from outside while this ran; if it was replaced before, the new one was open to it."
        covering = "open" if program is None or not self.name.inode else await program.cover(self.name)
        if covering == "closed":
            return f"{self.shown} was replaced while this ran, so the new one was open to it for a moment. It is closed again."
        if covering == "was closed":
            return ""
        return f"{self.shown} was replaced while this ran, and the new one was open to it from then on."


@dataclass(eq=False, slots=True)
class ClosedNames:
    """The closed names of one folder of a program, with the identity of what is there."""

    folder: Folder
    names: dict[Parts, Closed]

    @classmethod
    def of(cls, folder: Folder, closed: list[Closed]) -> "ClosedNames":
        return cls(folder, {each.parts: each for each in closed if each.how != "held" and each.parts})

    def reopened(self, fd: int) -> list[Reopened]:
        """The names that are others by now, each once. Blocking."""
        found: list[Reopened] = []
        for parts, was in self.names.items():
            about = stat_below(fd, parts)
            found_now = (0, 0) if about is None else (about.st_dev, about.st_ino)
            if found_now == (was.device, was.inode):
                continue
            if about is None:
                self.names[parts] = replace(was, device=0, inode=0)
                found.append(Reopened("/".join(parts), None))
                continue
            self.names[parts] = replace(was, device=about.st_dev, inode=about.st_ino)
            kind: Literal["read_only", "hidden"] = "hidden" if was.how == "hidden" else "read_only"
            place = "/".join((self.folder.path.rstrip("/"), *parts))
            # A mount cannot cover a link; without an identity none is made.
            inode = 0 if stat.S_ISLNK(about.st_mode) else about.st_ino
            found.append(Reopened("/".join(parts), Mount(kind, place, device=about.st_dev, inode=inode)))
        return found
