"""Finds the application a caller names, and refuses excluded ones."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.apps import App
from computer_linker.errors import NotFound, PermissionDenied


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
