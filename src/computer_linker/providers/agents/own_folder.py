"""The folder an agent keeps for itself, made private and with its scripts in place."""

import os
import tempfile
from pathlib import Path


def make_own_folder(folder: str, scripts: dict[str, str]) -> None:
    """Make the agent's own folder, with its scripts as they should be, whatever an earlier turn left there."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in scripts.items():
        # Written by descriptor and replaced whole: what the agent runs may write here, and may be starting it now.
        fd, fresh = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
        with os.fdopen(fd, "w") as file:
            os.fchmod(fd, 0o700)
            file.write(text)
        Path(fresh).replace(Path(folder, name))
