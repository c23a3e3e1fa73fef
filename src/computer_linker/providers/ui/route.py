"""Routes: which application or window a request is about, and which ones a scope excludes."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.errors import Conflict, ElementNotFound, LinkError, PermissionDenied, TimedOut
from computer_linker.model.base import Model
from computer_linker.model.geometry import Window
from computer_linker.model.scope import Scope
from computer_linker.providers.shots import is_excluded

Text = Annotated[str, Field(min_length=1, max_length=300)]


class Route(Model):
    """An application, a window, or both. An empty route is the focused window."""

    app: Annotated[Text | None, Field(description="The application's name, without regard to case.")] = None
    window: Annotated[Text | None, Field(description="A window id, or a part of its title.")] = None
    pid: Annotated[int | None, Field(ge=1, description="The application's process id.")] = None


@dataclass(frozen=True, slots=True)
class WindowRoute:
    """A resolved route: an application, and one of its windows when the route named one."""

    app: Application
    window: Element | None

    @property
    def root(self) -> ElementId:
        return self.app.root if self.window is None else self.window.id

    @property
    def title(self) -> str:
        return "" if self.window is None else self.window.name


PERSONS_OWN = ("xdg-desktop-portal-gnome", "xdg-desktop-portal-kde", "*polkit*", "gcr-prompter", "pinentry*")
"""Dialogs in which a person grants rights or types a password for them: no client may answer for the person."""


async def follow(computer: Computer, scope: Scope, route: Route | str | None) -> WindowRoute:
    """Resolve a route.

    Raises:
        ElementNotFound: nothing matches; the details list what exists and what to enable.
        Conflict: more than one application matches.
        PermissionDenied: the scope excludes this application.
    """
    apps = await computer.accessibility.applications()
    given = await _parsed(route, computer, apps)
    found = await _focused(computer, apps) if given == Route() else _fitting(given, apps, await _windows(computer))
    if not found:
        await _refuse_frozen(computer, scope, given, apps)
        raise await _nothing(computer, scope, apps)
    allowed = [place for place in found if not await is_out_of_reach(computer, scope, place.app)]
    if not allowed:
        raise PermissionDenied("This scope keeps that application out of reach.", rule="excludedApplications")
    if len({place.app.id for place in allowed}) > 1:
        raise Conflict(
            "More than one application fits. Name one by its pid.",
            candidates=[{"app": place.app.name, "pid": place.app.pid, "window": place.title} for place in allowed[:10]],
        )
    return allowed[0]


async def is_out_of_reach(computer: Computer, scope: Scope, app: Application) -> bool:
    """True when the scope excludes this application, by its name, its program's name or its windows' class."""
    patterns = scope.policy.excluded_applications
    names = {app.name.lower(), app.process.lower()} - {""}
    if any(fnmatchcase(name, pattern.lower()) for pattern in (*PERSONS_OWN, *patterns) for name in names):
        return True
    if not patterns:
        return False
    own = [window for window in await _windows(computer) if app.pid is not None and window.pid == app.pid]
    return any(is_excluded(window, patterns) for window in own)


async def _parsed(route: Route | str | None, computer: Computer, apps: Sequence[Application]) -> Route:
    if isinstance(route, Route):
        return route
    words = (route or "").strip()
    if words in ("", "focused"):
        return Route()
    if words.isdecimal() and len(words) < 10 and any(app.pid == int(words) for app in apps):
        return Route(pid=int(words))
    if any(app.name.casefold() == words.casefold() for app in apps):
        return Route(app=words[:300])
    return Route(window=words[:300])


def _fitting(route: Route, apps: Sequence[Application], windows: Sequence[Window]) -> list[WindowRoute]:
    title = next((window.title for window in windows if window.id == route.window), route.window)
    owner = next((window.pid for window in windows if window.id == route.window), None)
    found: list[WindowRoute] = []
    for app in apps:
        if route.pid is not None and app.pid != route.pid:
            continue
        if route.app is not None and app.name.casefold() != route.app.casefold():
            continue
        if route.window is None:
            found.append(WindowRoute(app, None))
        elif owner is None or owner == app.pid:
            found += [
                WindowRoute(app, window) for window in app.windows if _titled(window, title or "", owner is not None)
            ]
    return found if route.window is not None else [place for place in found if place.app.windows] or found


def _titled(window: Element, title: str, exactly: bool) -> bool:
    if exactly:
        return window.name[:200] == title[:200] or not window.name
    return title.casefold() in window.name.casefold()


async def _focused(computer: Computer, apps: Sequence[Application]) -> list[WindowRoute]:
    active = [WindowRoute(app, window) for app in apps for window in app.windows if "active" in window.states]
    if len(active) == 1:
        return active
    front = await computer.windows.focused() if computer.capabilities().has("windows") else None
    if front is None:
        return active
    own = [WindowRoute(app, window) for app in apps if app.pid == front.pid for window in app.windows]
    titled = [place for place in own if place.title[:200] == front.title]
    return (titled or own)[:1]


async def _windows(computer: Computer) -> list[Window]:
    return await computer.windows.list() if computer.capabilities().has("windows") else []


async def _refuse_frozen(computer: Computer, scope: Scope, route: Route, apps: Sequence[Application]) -> None:
    """Raise TimedOut where the window that fits belongs to an application that does not answer."""
    title = (route.window or "").casefold()
    for window in await _windows(computer):
        is_meant = route.pid in (None, window.pid) and (window.id == route.window or title in window.title.casefold())
        if route.app is not None:
            is_meant = is_meant and route.app.casefold() in (window.app.casefold(), window.process.casefold())
        app = next((app for app in apps if is_meant and app.pid is not None and app.pid == window.pid), None)
        if app is None or app.windows or is_excluded(window, (*PERSONS_OWN, *scope.policy.excluded_applications)):
            continue
        if not await computer.accessibility.is_alive(app.id):
            raise TimedOut(
                "The application of that window does not answer; it is busy or frozen.", app=window.app, pid=window.pid
            )


async def _nothing(computer: Computer, scope: Scope, apps: Sequence[Application]) -> LinkError:
    shown = [app for app in apps if app.windows and not await is_out_of_reach(computer, scope, app)]
    hints = await computer.accessibility.hidden() if computer.capabilities().has("windows") else []
    return ElementNotFound(
        "No application or window that describes its controls fits. " + (hints[0] if hints else ""),
        applications=[
            {"app": app.name, "pid": app.pid, "windows": [one.name for one in app.windows][:8]} for app in shown[:20]
        ],
        hints=hints[:8],
    )
