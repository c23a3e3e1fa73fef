"""The user that the service runs as."""

import getpass
import os

from computer_linker.model.base import Model


class UserContext(Model):
    """Who the service acts as; `elevated` is true for root or an administrator."""

    name: str
    elevated: bool


def this_user() -> UserContext:
    """The user of this process, as the system names it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = str(os.getuid()) if hasattr(os, "getuid") else ""
    return UserContext(name=name, elevated=_is_elevated())


def _is_elevated() -> bool:
    if hasattr(os, "geteuid"):
        return os.geteuid() == 0
    import ctypes

    windll = getattr(ctypes, "windll", None)
    return windll is not None and bool(windll.shell32.IsUserAnAdmin())
