"""Where password fields show, so that a capture can hide them."""

from dataclasses import dataclass, field

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Application, TreeLimits
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Rect, Window

_TIME_S = 4.0
_LIMITS = TreeLimits(max_nodes=20_000, time_s=3.5, values=False, roles=frozenset({"password-text"}))


@dataclass(slots=True)
class PasswordAreas:
    """Where password fields show, and which applications in sight could not say."""

    areas: list[Rect] = field(default_factory=list)
    silent: set[int] = field(default_factory=set)
    """The processes of applications that describe their controls but did not answer, or not in full."""
    is_complete: bool = False
    """True when every application in sight describes its controls and answered."""


async def password_areas(computer: Computer, windows: list[Window]) -> PasswordAreas:
    """The bounds of password fields in the applications whose windows show."""
    found = PasswordAreas()
    if not computer.capabilities().has("accessibility"):
        return found
    pids = {window.pid for window in windows if window.is_visible and window.pid is not None}
    try:
        applications = await computer.accessibility.applications()
    except LinkError:
        # No accessibility bus: nothing can say where passwords are.
        return found
    asked = [application for application in applications if application.pid in pids or not pids]
    # Whoever has not answered when the time is up stays silent.
    found.silent = {application.pid for application in asked if application.pid is not None}
    with anyio.move_on_after(_TIME_S):
        async with anyio.create_task_group() as group:
            for application in asked:
                group.start_soon(_ask, computer, application, found)
    found.is_complete = not found.silent and pids <= {application.pid for application in asked}
    return found


async def _ask(computer: Computer, application: Application, found: PasswordAreas) -> None:
    try:
        tree = await computer.accessibility.tree(application.root, _LIMITS)
    except LinkError:
        return
    found.areas.extend(element.bounds for element in tree.elements if element.bounds is not None)
    # A table of which not every cell was asked is no reason: there are no password fields in cells.
    if set(tree.cut_by) <= {"children"} and application.pid is not None:
        found.silent.discard(application.pid)
