"""The applications on the accessibility bus, and waking those that build their tree only on request."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.names import (
    ACCESSIBLE,
    APPLICATION,
    REGISTRY,
    ROOT_PATH,
    role_name,
    state_bits,
    state_names,
)
from computer_linker.computer.local.linux.atspi.nodes import element_id, shown_name
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, get
from computer_linker.model.geometry import Window
from computer_linker.system.linux import process_name

_ANSWER_S = 1.0
_WAKE_S = 3.0
_MAX_WINDOWS = 64
_REGISTRY_ROOT = ElementId(REGISTRY, ROOT_PATH)


class Apps:
    """Caches each application's toolkit and process for as long as it is on the bus."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._known: dict[str, Application] = {}
        self._woken: set[str] = set()

    async def all(self) -> list[Application]:
        """Every application, with its windows as they are now; one that does not answer has neither name nor windows."""
        roots = [
            at
            for pair in await self._wire.call(Request(_REGISTRY_ROOT, ACCESSIBLE, "GetChildren"))
            if (at := element_id(pair))
        ]
        silent = await self._learn([at for at in roots if at.app not in self._known])
        present = {at.app for at in roots}
        self._known = {name: app for name, app in self._known.items() if name in present}
        # Copies: another call at the same time would take the windows away from what this one returns.
        apps = [replace(app, windows=[]) for app in self._known.values()]
        kids = await self._wire.call_all([Request(app.root, ACCESSIBLE, "GetChildren") for app in apps], _ANSWER_S)
        await self._describe_windows(apps, kids)
        return apps + silent

    async def find(self, name: str) -> Application:
        """The description of one application, queried when it is not cached."""
        if name not in self._known:
            await self._learn([ElementId(name, ROOT_PATH)])
        return self._known.get(name) or Application(name, "", None, "", "", ElementId(name, ROOT_PATH))

    async def wake(self, app: Application) -> None:
        """Make Chromium build its page's tree, which it does only after an attribute request, and wait for it."""
        if app.toolkit.lower() != "chromium" or app.id in self._woken:
            return
        self._woken.add(app.id)
        windows = await self._wire.call_all([Request(app.root, ACCESSIBLE, "GetChildren")], _ANSWER_S)
        frames = [] if isinstance(windows[0], Fault) else [at for pair in windows[0] if (at := element_id(pair))]
        await self._wire.call_all([Request(at, ACCESSIBLE, "GetAttributes") for at in frames], _ANSWER_S)
        deadline = time.monotonic() + _WAKE_S
        # Chromium sends no event when its tree is complete, so it is polled.
        while time.monotonic() < deadline and not await self._has_document(frames):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def _learn(self, roots: list[ElementId]) -> list[Application]:
        """Query the applications' name, toolkit and process; returns those that did not answer in time."""
        requests = [
            request
            for at in roots
            for request in (
                get(at, ACCESSIBLE, "Name"),
                get(at, APPLICATION, "ToolkitName"),
                get(at, APPLICATION, "Version"),
            )
        ]
        answers = await self._wire.call_all(requests, _ANSWER_S)
        silent: list[Application] = []
        for place, at in enumerate(roots):
            said = answers[place * 3 : place * 3 + 3]
            if isinstance(said[0], Fault) and said[0].name != "timeout":
                continue
            words = [word if isinstance(word, str) else "" for word in said]
            pid = await self._wire.pid_of(at.app)
            app = Application(at.app, words[0], pid, words[1], words[2], at, process=process_name(pid))
            if isinstance(said[0], Fault):
                silent.append(app)
            else:
                self._known[at.app] = app
        return silent

    async def _describe_windows(self, apps: list[Application], kids: list[object]) -> None:
        owners: list[tuple[Application, ElementId]] = []
        for app, answer in zip(apps, kids, strict=True):
            if isinstance(answer, list):
                owners += [(app, at) for pair in answer[:_MAX_WINDOWS] if (at := element_id(pair))]
        requests = [
            request
            for _app, at in owners
            for request in (
                get(at, ACCESSIBLE, "Name"),
                Request(at, ACCESSIBLE, "GetRole"),
                Request(at, ACCESSIBLE, "GetState"),
            )
        ]
        answers = await self._wire.call_all(requests, _ANSWER_S)
        for place, (app, at) in enumerate(owners):
            name, role, words = answers[place * 3 : place * 3 + 3]
            if not any(isinstance(one, Fault) for one in (name, role, words)):
                states = state_names(state_bits(words))
                app.windows.append(
                    Element(at, app.root, role_name(role), shown_name(name), states, index=len(app.windows))
                )

    async def _has_document(self, frames: list[ElementId]) -> bool:
        level = frames
        for _depth in range(12):
            counts = await self._wire.call_all([get(at, ACCESSIBLE, "ChildCount") for at in level], _ANSWER_S)
            roles = await self._wire.call_all([Request(at, ACCESSIBLE, "GetRole") for at in level], _ANSWER_S)
            for count, role in zip(counts, roles, strict=True):
                if isinstance(role, int) and role_name(role) == "document-web":
                    return isinstance(count, int) and count > 0
            kids = await self._wire.call_all([Request(at, ACCESSIBLE, "GetChildren") for at in level], _ANSWER_S)
            level = [at for answer in kids if isinstance(answer, list) for pair in answer if (at := element_id(pair))]
            if not level:
                return False
        return False


# What to enable when an application has a window but exposes no tree.

_REMEDIES = (
    (
        ("chromium", "chrome", "google-chrome", "electron", "brave", "code", "slack", "discord", "msedge"),
        "{app} reads the accessibility switch only when it starts. It is on now: close {app} and start it again.",
    ),
    (
        ("libreoffice", "soffice"),
        "{app} shows its controls only with the GTK interface: install libreoffice-gtk3 and start it again.",
    ),
    (
        ("xterm", "uxterm", "rxvt", "urxvt", "st", "alacritty", "kitty"),
        "{app} draws its own text and never describes it. Use screen.ocr on its window.",
    ),
)
_OTHERWISE = (
    "{app} describes no controls. Start it again now that accessibility is on (and without NO_AT_BRIDGE), or use "
    "screen.capture and screen.ocr."
)


def hidden_trees(windows: Sequence[Window], apps: Sequence[Application]) -> list[str]:
    """One sentence for each application that has a window but no tree."""
    seen = {app.pid for app in apps if app.windows}
    sentences: dict[str, None] = {}
    for window in windows:
        if window.pid is not None and window.pid not in seen and window.is_visible:
            sentences[_remedy(window.app or window.title)] = None
    return list(sentences)


def _remedy(app: str) -> str:
    lowered = app.lower()
    for names, sentence in _REMEDIES:
        if any(lowered == name or lowered.startswith((name + "-", name + ".")) for name in names):
            return sentence.format(app=app)
    return _OTHERWISE.format(app=app)
