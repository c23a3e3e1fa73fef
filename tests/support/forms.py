"""The fixture applications: one form in four toolkits, each telling a journal what reached it."""

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Application
from support.desktop import Desktop, missing
from support.waiting import until, until_awaited

APPS = Path(__file__).parents[1] / "fixtures" / "apps"
_READY_S = 30.0
_NAMES = {"gtk3": "gtk3-form", "gtk4": "gtk4-form", "qt6": "qt6-form", "chromium": "Chromium"}
TITLES = {"gtk3": "GTK 3 form", "gtk4": "GTK 4 form", "qt6": "Qt 6 form", "chromium": "Chromium form"}
TOOLKITS = tuple(_NAMES)


def lacking(toolkit: str) -> str:
    """What this machine lacks for a toolkit's form; empty when nothing."""
    if toolkit == "qt6":
        return "" if importlib.util.find_spec("PySide6") else "PySide6-Essentials"
    if toolkit == "chromium":
        return ", ".join(missing("chromium"))
    version = {"gtk3": "3.0", "gtk4": "4.0"}[toolkit]
    code = f"import gi; gi.require_version('Gtk', '{version}')"
    found = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, check=False)
    return "" if found.returncode == 0 else f"python3-gi with gir1.2-gtk-{version}"


@dataclass
class Form:
    """One running form."""

    toolkit: str
    process: "subprocess.Popen[bytes] | None"
    """None for one that the service opened."""
    journal: Path

    @property
    def app(self) -> str:
        """Its name on the accessibility bus."""
        return _NAMES[self.toolkit]

    @property
    def title(self) -> str:
        return TITLES[self.toolkit]

    def events(self, event: str | None = None) -> list[dict[str, Any]]:
        """What reached it so far."""
        lines = self.journal.read_text(encoding="utf-8").splitlines() if self.journal.exists() else []
        found = [json.loads(line) for line in lines]
        return [one for one in found if event is None or one["event"] == event]

    async def told(self, event: str, fits: Callable[[dict[str, Any]], bool] = lambda _one: True) -> dict[str, Any]:
        """The latest event of this kind that fits, waited for."""
        found = await until(lambda: [one for one in self.events(event) if fits(one)])
        return found[-1]

    def text(self, field: str) -> str | None:
        """What a field held when it last changed."""
        found = [one["text"] for one in self.events("text") if one["field"] == field]
        return found[-1] if found else None


@contextmanager
def frozen(form: Form) -> Iterator[None]:
    """The application stopped, all its processes."""
    assert form.process is not None
    os.killpg(form.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(form.process.pid, signal.SIGCONT)


def install_form(desktop: Desktop, toolkit: str, *, env: dict[str, str], flags: tuple[str, ...] = ()) -> Form:
    """Put a form among the desktop's applications, under its title, for somebody else to open."""
    journal = desktop.folder / f"{toolkit}-{time.monotonic_ns()}.jsonl"
    # What the service opens runs as the desktop's own applications do.
    given = {"PYTHONDONTWRITEBYTECODE": "1", "GSETTINGS_BACKEND": "memory", **env}
    command = ["env", *(f"{name}={value}" for name, value in given.items()), _python(toolkit)]
    command += [str(APPS / f"{toolkit}_form.py"), str(journal), *flags]
    folder = Path(desktop.env["HOME"]) / ".local" / "share" / "applications"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["[Desktop Entry]", "Type=Application", f"Name={TITLES[toolkit]}", f"Exec={shlex.join(command)}"]
    lines += ["StartupWMClass=chromium"] if toolkit == "chromium" else []
    (folder / f"{toolkit}-form.desktop").write_text("\n".join(lines) + "\n")
    return Form(toolkit, None, journal)


def end_form(form: Form) -> None:
    """End a form that the service opened, and all it started."""
    for one in form.events("started"):
        with suppress(ProcessLookupError):
            os.killpg(one["group"], signal.SIGKILL)


def _python(toolkit: str) -> str:
    return sys.executable if toolkit == "qt6" else "/usr/bin/python3"


def open_form(
    desktop: Desktop, toolkit: str, *, env: dict[str, str] | None = None, flags: tuple[str, ...] = ()
) -> Form:
    """Start a form and wait until its window shows."""
    journal = desktop.folder / f"{toolkit}-{time.monotonic_ns()}.jsonl"
    extra = {"PYTHONDONTWRITEBYTECODE": "1", "GSETTINGS_BACKEND": "memory", **(env or {})}
    process = desktop.launch(_python(toolkit), str(APPS / f"{toolkit}_form.py"), str(journal), *flags, env=extra)
    form = Form(toolkit, process, journal)
    deadline = time.monotonic() + _READY_S
    while not form.events("ready"):
        if time.monotonic() > deadline or process.poll() is not None:
            raise AssertionError(f"the {toolkit} form did not start")
        time.sleep(0.05)  # bounded above, and ends at once when the form has
    return form


async def on_the_bus(computer: Computer, form: Form) -> Application:
    """The form as an application that describes its controls; a toolkit registers some time after its window shows."""

    async def found() -> list[Application]:
        apps = await computer.accessibility.applications()
        return [app for app in apps if app.name == form.app and app.windows]

    return (await until_awaited(found, step_s=0.05))[0]
