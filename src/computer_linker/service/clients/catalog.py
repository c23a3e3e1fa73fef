"""Every client we know, found in this folder, and whose settings we look at."""

import os
import platform
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Literal

from computer_linker.service import clients
from computer_linker.service.clients.form import Client, User


def known_clients() -> dict[str, Client]:
    """By name, in alphabetical order."""
    modules = [import_module(f"{clients.__name__}.{module.name}") for module in iter_modules(clients.__path__)]
    found = [module.CLIENT for module in modules if hasattr(module, "CLIENT")]
    return {client.name: client for client in sorted(found, key=lambda client: str(client.name))}


def this_user(environment: Mapping[str, str] | None = None) -> User:
    """The person who runs this command."""
    given = os.environ if environment is None else environment
    named = platform.system().lower()
    system: Literal["linux", "darwin", "windows"] = (
        "darwin" if named == "darwin" else "windows" if named == "windows" else "linux"
    )
    return User(Path(os.path.expanduser("~")), given, system)  # noqa: PTH111  # as home.py does it
