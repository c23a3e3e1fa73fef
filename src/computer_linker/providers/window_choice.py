"""Finds the window a caller names."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.windows import App
from computer_linker.errors import NotFound, PermissionDenied, ProcessNotFound
from computer_linker.model.geometry import Window
from computer_linker.providers.shots import is_excluded


def window_by_id(windows: Sequence[Window], window_id: str, excluded: Sequence[str]) -> Window:
    """The window of this id.

    Raises:
        NotFound: there is none.
        PermissionDenied: it belongs to an application the scope excludes.
    """
    for window in windows:
        if window.id == window_id:
            return _allowed(window, excluded)
    raise NotFound("There is no such window. window.list gives the ids.", windowId=window_id[:64])


def window_of_process(windows: Sequence[Window], process: str, excluded: Sequence[str]) -> Window:
    """The focused, else topmost visible window of a process by id or exact name."""
    wanted = process.lower()
    mine = [one for one in windows if wanted in (str(one.pid), one.process.lower(), one.app.lower())]
    if not mine:
        raise ProcessNotFound("No process of this id or name has a window.", process=process[:80])
    # Focused before visible before others; the sort is stable, so the topmost stays first.
    best = sorted(mine, key=lambda one: (not one.is_focused, not one.is_visible))[0]
    return _allowed(best, excluded)


def _allowed(window: Window, excluded: Sequence[str]) -> Window:
    if is_excluded(window, excluded):
        raise PermissionDenied("This scope keeps that application out of sight.", rule="excludedApplications")
    return window


# Finds the application a caller names, and refuses excluded ones.


def is_hidden(app: App, excluded: Sequence[str]) -> bool:
    """True when the scope excludes this application."""
    names = {app.id.lower(), app.name.lower(), app.id.rpartition(".")[2].lower()}
    return any(fnmatchcase(name, pattern.lower()) for pattern in excluded for name in names)


def refuse_hidden(app: App, excluded: Sequence[str]) -> None:
    """Raise PermissionDenied for an excluded application."""
    if is_hidden(app, excluded):
        raise PermissionDenied("This scope keeps that application out of sight.", rule="excludedApplications")


async def running_app(computer: Computer, name: str, excluded: Sequence[str]) -> App:
    """The running application of this id or name."""
    for app in await computer.apps.list(running_only=True):
        if name.lower().removesuffix(".desktop") in (app.id.lower(), app.name.lower()):
            refuse_hidden(app, excluded)
            return app
    raise NotFound("No running application with a window has this id or name.", app=name[:80])
