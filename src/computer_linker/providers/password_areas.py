"""Where password fields show, so that a capture can hide them."""

from dataclasses import dataclass, field

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import ElementId, TreeLimits
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Rect, Window

_TIME_S = 1.5
_LIMITS = TreeLimits(max_nodes=4000, max_depth=48, time_s=1.0, bounds=True, values=False)


@dataclass(slots=True)
class PasswordAreas:
    """Where password fields show, and whether every application in sight could be asked."""

    areas: list[Rect] = field(default_factory=list)
    is_complete: bool = False


async def password_areas(computer: Computer, windows: list[Window]) -> PasswordAreas:
    """The bounds of password fields in the applications whose windows show."""
    found = PasswordAreas()
    if not computer.capabilities().has("accessibility"):
        return found
    pids = {window.pid for window in windows if window.is_visible and window.pid is not None}
    with anyio.move_on_after(_TIME_S):
        found.is_complete = await _collect(computer, pids, found.areas)
    return found


async def _collect(computer: Computer, pids: set[int], areas: list[Rect]) -> bool:
    """True when every application with a window was read to its end."""
    try:
        applications = await computer.accessibility.applications()
    except LinkError:
        # No accessibility bus: nothing can say where passwords are.
        return False
    asked = [application for application in applications if application.pid in pids or not pids]
    read: list[bool] = []

    async def ask(root: ElementId) -> None:
        read.append(await _of_one(computer, root, areas))

    async with anyio.create_task_group() as group:
        for application in asked:
            group.start_soon(ask, application.root)
    return all(read) and pids <= {application.pid for application in asked}


async def _of_one(computer: Computer, root: ElementId, areas: list[Rect]) -> bool:
    try:
        tree = await computer.accessibility.tree(root, _LIMITS)
    except LinkError:
        return False
    areas.extend(element.bounds for element in tree.elements if element.is_password and element.bounds is not None)
    return not tree.truncated
