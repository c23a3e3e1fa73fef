"""The machine's identity: made once, kept for good."""

import os
import platform
import secrets
import tempfile
from pathlib import Path
from typing import Any

from computer_linker.errors import ConfigInvalid

_ID_FILE = "machine-id"


def new_machine_id() -> str:
    """A fresh identity, not derived from hardware, so that it tells nothing about the machine."""
    return f"machine-{secrets.token_hex(16)}"


def machine_name() -> str:
    """The name people know this computer by."""
    return platform.node().split(".")[0][:128] or "this computer"


def with_identity(value: dict[str, Any], home: Path) -> dict[str, Any]:
    """The document with the identity a hand-written file may leave out. The file itself is not touched."""
    named = dict(value)
    if "machineId" not in named:
        named["machineId"] = remembered_id(home)
    named.setdefault("machineName", machine_name())
    return named


def remembered_id(home: Path) -> str:
    """The identity kept beside a config file that has none; made on first use."""
    path = home / _ID_FILE
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    made = new_machine_id()
    try:
        return _keep(path, made)
    except OSError as error:
        raise ConfigInvalid(
            f"config.json: `machineId` is needed, and none can be kept beside it ({error.strerror})",
            "add a machineId, or make the state folder writable",
        ) from error


def _keep(path: Path, made: str) -> str:
    """Keep the new identity unless another process was first. Linking shows the file only when it is whole."""
    fd, temporary = tempfile.mkstemp(prefix=".machine-id-", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(made + "\n")
        os.link(temporary, path)
    except FileExistsError:
        return _read(path)
    finally:
        Path(temporary).unlink()
    return made


def _read(path: Path) -> str:
    text = path.read_text("ascii", errors="replace").strip()
    if not text:
        raise ConfigInvalid(f"{_ID_FILE} in the state folder is empty", f"remove {path}")
    return text[:128]
