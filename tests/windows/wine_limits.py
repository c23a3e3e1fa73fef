"""A pytest plugin for Windows Python: a test that arranges what Windows, or wine, does not have is skipped with that reason."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

_ABSENT = {
    "symlink": "wine before version 9 makes no symbolic links",
    "mkfifo": "Windows has no pipes in folders",
    "mknod": "Windows has no device files",
    "chown": "Windows has no owners by number",
    "setxattr": "Windows has no extended attributes of that kind",
    "killpg": "Windows has no process groups of that kind",
}

_TESTS = Path(__file__).resolve().parent.parent


def _skipping(reason: str) -> Callable[..., NoReturn]:
    def absent(*_: object, **__: object) -> NoReturn:
        callers = (sys._getframe(1).f_code.co_filename, sys._getframe(2).f_code.co_filename)
        if any(Path(name).is_relative_to(_TESTS) for name in callers):
            pytest.skip(reason)
        raise OSError(errno.EOPNOTSUPP, reason)

    return absent


def pytest_configure() -> None:
    for name, reason in _ABSENT.items():
        setattr(os, name, _skipping(reason))
