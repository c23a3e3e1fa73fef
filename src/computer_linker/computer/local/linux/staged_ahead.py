"""The recipe of a staged root: what decides whether a root that was staged ahead is the one an order needs."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from computer_linker.computer.facets.processes import Launch, Mount, ProcessLimits, Staging
from computer_linker.config.mounts import table

_OF_ONE_COMMAND = ("view", "copied", "file")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything a root is staged from. Equal recipes make equal roots as long as what the first one was made from is held.

    A staged root keeps its folders' inodes in use, so none of their numbers can stand for another folder meanwhile. The names in
    them are not part of it: the child looks at those again.
    """

    mounts: tuple[Mount, ...]
    held: tuple[tuple[int, int], ...]
    """Device and inode of each descriptor."""
    room_bytes: int
    other_ids: int | None
    limits: ProcessLimits
    table: int
    """The version of the machine's mount table: a root has the mounts that were there when it was staged."""


def recipe_of(launch: Launch) -> Recipe | None:
    """The recipe of a launch's root; None where the root is of one command alone, or there is none."""
    staging = launch.staging
    if staging is None or staging.network is not None or launch.pty is not None:
        return None
    if any(mount.kind in _OF_ONE_COMMAND for mount in staging.mounts):
        return None
    found = [os.fstat(fd) for fd in staging.fds]
    return Recipe(
        staging.mounts,
        tuple((each.st_dev, each.st_ino) for each in found),
        staging.room_bytes,
        staging.other_ids,
        launch.limits,
        table().current(),
    )


class NextRoots:
    """The roots to stage next, one of each client, with descriptors of their own."""

    def __init__(self) -> None:
        self._roots: dict[str, tuple[Recipe, Staging]] = {}

    def __contains__(self, client: str) -> bool:
        return client in self._roots

    def put(self, client: str, recipe: Recipe, staging: Staging) -> None:
        """Have this root staged by the client's next waiting child."""
        self.close(client)
        held: list[int] = []
        try:
            held += (os.dup(fd) for fd in staging.fds)
        except OSError:
            close_all(held)
            return
        self._roots[client] = (recipe, replace(staging, fds=tuple(held)))

    def take(self, client: str) -> tuple[Recipe, Staging] | None:
        """The client's root; the caller closes its descriptors."""
        return self._roots.pop(client, None)

    def close(self, client: str | None = None) -> None:
        for each in list(self._roots) if client is None else [client]:
            if (root := self._roots.pop(each, None)) is not None:
                close_all(root[1].fds)


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        with suppress(OSError):
            os.close(fd)
