"""Whether the kernel can cover folders with an overlay, found by trying it."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_PROBE = "computer_linker.computer.local.linux.overlay_probe"
_DEADLINE_S = 20.0


def can_overlay(state: Path, roots: Sequence[str]) -> bool:
    """Try to mount the folders with changes going to the file system of `state`. Blocking."""
    # Named like what a crash leaves of a view, so that it is cleaned up like it.
    store = Path(tempfile.mkdtemp(prefix="probe", dir=state))
    try:
        # Isolated: the working folder may be a scope's, and a program could have left modules in it.
        argv = [sys.executable, "-I", "-m", _PROBE, str(store), *roots]
        tried = subprocess.run(argv, cwd="/", capture_output=True, timeout=_DEADLINE_S, check=False)
        return tried.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        shutil.rmtree(store, ignore_errors=True)
