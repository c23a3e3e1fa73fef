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
from computer_linker.model.geometry import Rect, Window
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
    windows = [] if given.window is None else await _windows(computer)
    found = await _focused(computer, apps) if given == Route() else _fitting(given, apps, windows)
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
    return (
        allowed[0] if len(allowed) == 1 or given.window is None else await _one_window(computer, allowed, given.window)
    )


async def _one_window(computer: Computer, found: list[WindowRoute], named: str) -> WindowRoute:
    """The window that a route means, of several of one application that fit: by its id, its whole title, or its showing.

    Raises:
        Conflict: several remain; an act in the first could be meant for another.
    """
    windows = await _windows(computer)
    meant = next((window for window in windows if window.id == named), None)
    if meant is not None:
        same = [window for window in windows if (window.pid, window.title) == (meant.pid, meant.title)]
        return (await _with_ids(computer, found, same)).get(meant.id, found[0])
    found = [place for place in found if place.title.casefold() == named.casefold()] or found
    found = [place for place in found if place.window is not None and "showing" in place.window.states] or found
    if len(found) > 1:
        titles = {place.title[:200] for place in found}
        fitting = [one for one in windows if one.pid == found[0].app.pid and one.title in titles]
        raise Conflict(
            "More than one window of the application fits. Name one by its id.",
            candidates=[{"window": one.id, "title": one.title, "bounds": one.bounds.to_wire()} for one in fitting[:10]],
        )
    return found[0]


async def _with_ids(
    computer: Computer, found: Sequence[WindowRoute], windows: Sequence[Window]
) -> dict[str, WindowRoute]:
    """The application's windows by the ids of the window system's, which have the same title."""
    frames = [(place, place.window) for place in found if place.window is not None]
    now = [(place, await computer.accessibility.element(frame.id)) for place, frame in frames]
    return {window_of(frame, windows).id: place for place, frame in now}


def window_of(frame: Element, windows: Sequence[Window]) -> Window:
    """The one of several windows of one title that is this window of its application: by its place, then by the focus.

    Raises:
        Conflict: neither tells them apart.
    """
    if len(windows) == 1:
        return windows[0]
    apart = {one.id: min(_apart(frame.bounds, one.bounds), _apart(frame.bounds, one.frame)) for one in windows}
    near = [one for one in windows if apart[one.id] == min(apart.values())]
    near = near if len(near) == 1 else [one for one in near if one.is_focused == ("active" in frame.states)]
    if len(near) != 1:
        raise Conflict("Several windows have this title and place, so which of them is meant cannot be told.")
    return near[0]


def _apart(one: Rect | None, other: Rect | None) -> float:
    """How far the edges of two rectangles lie from each other."""
    if one is None or other is None:
        return float("inf")
    corners = (one.x - other.x, one.y - other.y, one.width - other.width, one.height - other.height)
    return sum(abs(edge) for edge in corners)


async def is_in_front(computer: Computer, route: Route | str) -> bool:
    """True when the focused window, as the window system describes it, is the one that a route names."""
    given = route if isinstance(route, Route) else Route(window=route[:300])
    front = await computer.windows.focused() if computer.capabilities().has("windows") else None
    if front is None or given == Route():
        return False
    fits_window = given.window is None or given.window == front.id or given.window.casefold() in front.title.casefold()
    fits_app = given.app is None or given.app.casefold() in (front.app.casefold(), front.process.casefold())
    return fits_window and fits_app and given.pid in (None, front.pid)


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
