"""Where password fields show, so that a capture can hide them."""

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import ElementId, TreeLimits
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Rect, Window

_TIME_S = 1.5
_LIMITS = TreeLimits(max_nodes=4000, max_depth=48, time_s=1.0, bounds=True, values=False)


async def password_areas(computer: Computer, windows: list[Window]) -> list[Rect]:
    """The bounds of password fields in the applications whose windows show; empty where nothing describes controls."""
    if not computer.capabilities().has("accessibility"):
        return []
    pids = {window.pid for window in windows if window.is_visible and window.pid is not None}
    areas: list[Rect] = []
    with anyio.move_on_after(_TIME_S):
        await _collect(computer, pids, areas)
    return areas


async def _collect(computer: Computer, pids: set[int], areas: list[Rect]) -> None:
    try:
        applications = await computer.accessibility.applications()
    except LinkError:
        # No accessibility bus: nothing can say where passwords are. The capability list says so too.
        return
    async with anyio.create_task_group() as group:
        for application in applications:
            if application.pid in pids or not pids:
                group.start_soon(_of_one, computer, application.root, areas)


async def _of_one(computer: Computer, root: ElementId, areas: list[Rect]) -> None:
    try:
        tree = await computer.accessibility.tree(root, _LIMITS)
    except LinkError:
        return
    areas.extend(element.bounds for element in tree.elements if element.is_password and element.bounds is not None)
