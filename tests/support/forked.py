"""Processes of the program, forked from one that has its modules loaded.

To start Python and load them takes a second of processor time, ten times what most commands do. How the program starts by
itself is tried by the tests that start `PROGRAM`, and coverage is measured there too.
"""

import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

PROGRAM = [sys.executable, "-m", "computer_linker"]
_PACKAGES = ("cli", "owner", "serve", "service", "tools", "operations", "transports")
IS_MEASURED = any(name.startswith("COVERAGE_") for name in os.environ)
"""Whether coverage is measured, which needs processes that start by themselves."""


@cache
def _forking() -> ForkServerContext:
    """With what commands and services load, also what they load only when it is first used."""
    context = multiprocessing.get_context("forkserver")
    packages = [import_module(f"computer_linker.{name}") for name in _PACKAGES]
    context.set_forkserver_preload(
        [
            module.name
            for package in packages
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        ]
    )
    return context


def environment(home: Path, **more: str) -> dict[str, str]:
    """This environment, with the state folder named."""
    return {**os.environ, "COMPUTER_LINKER_HOME": str(home), **more}


class Forked:
    """One such process, used as `subprocess.Popen` is."""

    def __init__(self, argv: list[str], env: dict[str, str], streams: list[Path] | Connection) -> None:
        self.args = argv
        self._process = _forking().Process(target=_run, args=(argv, env, os.getcwd(), streams))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Raises TimeoutExpired."""
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def pipe() -> tuple[Connection, Connection]:
    """The end to read, and the end that a process gets as its standard error."""
    return _forking().Pipe(duplex=False)


def _run(argv: list[str], env: dict[str, str], folder: str, streams: list[Path] | Connection) -> None:
    from computer_linker.__main__ import main

    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    if isinstance(streams, list):
        opened = [os.open(path, os.O_RDWR | os.O_APPEND) for path in streams]
    else:
        nothing = os.open(os.devnull, os.O_RDWR)
        opened = [nothing, nothing, streams.fileno()]
    for number, descriptor in enumerate(opened):
        os.dup2(descriptor, number)
    for descriptor in {*opened} - {0, 1, 2}:
        os.close(descriptor)
    sys.stdin, sys.stdout = os.fdopen(0, "r", closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.argv = ["computer-linker", *argv]
    sys.exit(main())
