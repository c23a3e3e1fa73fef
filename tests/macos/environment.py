"""An environment whose interpreter, and every interpreter it starts, takes this Linux machine for macOS (see macos_shim.py)."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
_BASE = Path(sys.executable).resolve()


def make(folder: Path) -> Path:
    """Make the environment in an empty folder; returns its Python."""
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    python = folder / "bin" / "python"
    python.symlink_to(_BASE)
    (folder / "pyvenv.cfg").write_text(f"home = {_BASE.parent}\ninclude-system-site-packages = false\n")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        # By links, so that the environment has them itself: the decoders' interpreter looks there alone.
        if package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    (packages / "macos-shim.pth").write_text(f"{SOURCE}\n{HERE}\nimport macos_shim\n")
    if (
        ripgrep := shutil.which("rg", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    ) is not None:
        (folder / "bin" / "rg").symlink_to(ripgrep)
    return python


def run(python: Path, *arguments: str, home: Path, deadline_s: float = 240) -> "subprocess.CompletedProcess[str]":
    """Run this interpreter with a state folder; returns its end and output."""
    environment = {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(home.parent), "LANG": "C.UTF-8",
        "COMPUTER_LINKER_HOME": str(home),
    }  # fmt: skip
    return subprocess.run(
        [str(python), *arguments], env=environment, capture_output=True, text=True, timeout=deadline_s, check=False
    )
