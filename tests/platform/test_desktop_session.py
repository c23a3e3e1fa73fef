"""A service that was started without a display finds the desktop of its own user, and no other."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker.computer.local.linux.desktop_session import desktop_session
from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, stop, x11_desktop

BARE = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE")


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    with x11_desktop(tmp_path_factory.mktemp("session")) as opened:
        yield opened


def bare(desktop: Desktop) -> dict[str, str]:
    """The environment that a client gives: the same person, without a session."""
    return {name: value for name, value in desktop.env.items() if name not in BARE}


@contextmanager
def running(env: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(["sleep", "300"], env=env, start_new_session=True)
    try:
        yield
    finally:
        stop(process)


def test_the_session_is_found_by_its_programs(desktop: Desktop) -> None:
    found = desktop_session(bare(desktop))
    assert found.reason == "" and found.environ["DISPLAY"] == desktop.env["DISPLAY"]
    assert found.environ["XDG_RUNTIME_DIR"] == desktop.env["XDG_RUNTIME_DIR"]
    computer = this_computer(bare(desktop))
    assert computer.capabilities().facets["screen"].state == "present"


def test_an_own_display_stays(desktop: Desktop) -> None:
    given = {**bare(desktop), "DISPLAY": ":987"}
    assert desktop_session(given).environ == given


@pytest.mark.parametrize("changed", [{"HOME": "/elsewhere"}, {"HOME": ""}])
def test_the_desktop_of_another_home_is_not_taken(desktop: Desktop, changed: dict[str, str]) -> None:
    found = desktop_session({**bare(desktop), **changed})
    assert "DISPLAY" not in found.environ and "no program of a desktop session" in found.reason


@pytest.mark.parametrize(
    "env",
    [
        {"DISPLAY": ":64999"}, {"DISPLAY": "elsewhere.example:0"}, {"DISPLAY": "localhost:10.0"},
        {"WAYLAND_DISPLAY": "wayland-none", "XDG_RUNTIME_DIR": "/nowhere"}, {"WAYLAND_DISPLAY": "/etc/passwd"},
    ],
)  # fmt: skip
def test_a_display_that_is_not_there_is_not_taken(tmp_path: Path, env: dict[str, str]) -> None:
    person = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "XDG_SESSION_TYPE": "x11"}
    with running({**person, **env}):
        assert desktop_session({"HOME": str(tmp_path)}).reason


def test_a_terminal_session_is_no_desktop(desktop: Desktop, tmp_path: Path) -> None:
    with running({"HOME": str(tmp_path), "DISPLAY": desktop.env["DISPLAY"], "XDG_SESSION_TYPE": "tty"}):
        assert desktop_session({"HOME": str(tmp_path)}).reason


def test_a_program_that_the_user_could_have_written_is_not_believed(desktop: Desktop, tmp_path: Path) -> None:
    own = tmp_path / "gnome-shell"
    own.write_bytes(Path("/usr/bin/sleep").resolve().read_bytes())
    own.chmod(0o777)
    env = {"HOME": str(tmp_path), "DISPLAY": desktop.env["DISPLAY"], "XDG_SESSION_TYPE": "x11"}
    process = subprocess.Popen([str(own), "300"], env=env, start_new_session=True)
    try:
        assert desktop_session({"HOME": str(tmp_path)}).reason
    finally:
        stop(process)


def test_of_several_the_active_one_is_taken_or_none(desktop: Desktop, tmp_path: Path) -> None:
    with x11_desktop(tmp_path / "other") as second:
        home = {"HOME": str(tmp_path), "XDG_SESSION_TYPE": "x11"}
        with running({**home, "DISPLAY": desktop.env["DISPLAY"]}), running({**home, "DISPLAY": second.env["DISPLAY"]}):
            found = desktop_session({"HOME": str(tmp_path)}, sessions=str(tmp_path / "none"))
            assert "several desktop sessions" in found.reason and "DISPLAY" not in found.environ
