"""What the kernel can do with an overlay, found by trying it in a program of its own."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_PROGRAMS = "computer_linker.computer.local.linux"
_DEADLINE_S = 20.0


def can_overlay(state: Path, roots: Sequence[str]) -> bool:
    """Try to mount the folders with changes going to the file system of `state`. Blocking."""
    return _succeeds("overlay_probe", state, roots)


def is_released(state: Path, uppers: Sequence[str]) -> bool:
    """True when no overlay uses these folders of `state` any more, so that no program can reach what is in them. Blocking."""
    return _succeeds("overlay_use", state, uppers)


def _succeeds(program: str, state: Path, folders: Sequence[str]) -> bool:
    # Named like what a crash leaves of a view, so that it is cleaned up like it.
    store = Path(tempfile.mkdtemp(prefix="probe", dir=state))
    try:
        # Isolated: the working folder may be a scope's, and a program could have left modules in it.
        argv = [sys.executable, "-I", "-m", f"{_PROGRAMS}.{program}", str(store), *folders]
        tried = subprocess.run(argv, cwd="/", capture_output=True, timeout=_DEADLINE_S, check=False)
        return tried.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        shutil.rmtree(store, ignore_errors=True)
