"""Whether the screen can be captured here, asked of the system without capturing a pixel."""

from typing import Annotated, Literal

import anyio
from pydantic import Field

from computer_linker.computer.base import Computer
from computer_linker.errors import LinkError, OsPermissionRequired
from computer_linker.model.base import Model

_ASK_S = 3.0
PermissionStatus = Literal["granted", "asks", "denied", "required", "unknown", "unavailable"]


class ScreenPermission(Model):
    """The system's permission to capture the screen."""

    status: Annotated[
        PermissionStatus,
        Field(description="`asks`: the system asks the person at a capture. `required`: it must be granted first."),
    ]
    detail: str | None = None


class Screenshots(Model):
    """The screen capture of this machine, in the form of a program of `tools`."""

    available: bool
    path: None = None
    version: None = None
    need: Literal["optional"] = "optional"
    purpose: str = "screen.* operations"
    modes: list[str]
    backend: str | None
    is_proven: bool
    permission: ScreenPermission
    remedy: str | None


async def screenshot_readiness(computer: Computer) -> Screenshots:
    """Look at the capture backend and ask for its displays, which needs the same access as a capture, and no pixels."""
    state = computer.capabilities().facets["screen"]
    available = state.state == "present"
    return Screenshots(
        available=available,
        modes=["display", "window", "process"] if available else [],
        backend=state.backend or None,
        is_proven=state.is_proven,
        permission=await _permission(computer),
        remedy=None if available else (f"{state.reason} {state.remedy}".strip() or None),
    )


async def _permission(computer: Computer) -> ScreenPermission:
    state = computer.capabilities().facets["screen"]
    if state.state != "present":
        return ScreenPermission(status="required" if state.state == "blocked" else "unavailable")
    try:
        with anyio.fail_after(_ASK_S):
            displays = await computer.screen.displays()
    except OsPermissionRequired as error:
        return ScreenPermission(status="denied", detail=error.message)
    except (LinkError, TimeoutError, OSError) as error:
        return ScreenPermission(status="unknown", detail=str(error) or "the display server does not answer")
    if state.backend == "portal":
        return ScreenPermission(status="asks", detail="the desktop asks its person at a capture")
    return ScreenPermission(status="granted", detail=f"displays that answer: {len(displays)}")
