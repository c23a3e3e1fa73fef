"""Runs commands of the program, each in a process of its own, forked from one that has the program's modules loaded.

To start Python and load them takes ten times as long as what most commands do. How a command starts by itself is tried
by the tests that start `PROGRAM`, and coverage is measured there too.
"""

import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import computer_linker.cli
import computer_linker.owner
from support.service import PROGRAM, environment

DEADLINE_S = 180.0
_FORKING = multiprocessing.get_context("forkserver")


def _modules() -> Iterator[str]:
    for package in (computer_linker.cli, computer_linker.owner):
        yield from (module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."))
    yield "computer_linker.serve.owner_calls"


_FORKING.set_forkserver_preload(list(_modules()))


def command(
    home: Path, *words: str | Path, stdin: str = "", seconds: float = DEADLINE_S, **env: str
) -> subprocess.CompletedProcess[str]:
    """The ended command: its exit code, and what it wrote. Raises TimeoutExpired."""
    argv, variables = [str(word) for word in words], environment(home, **env)
    if any(name.startswith("COVERAGE_") for name in os.environ):
        return subprocess.run(
            [*PROGRAM, *argv], env=variables, input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        for path, text in zip(streams, (stdin, "", ""), strict=True):
            path.write_text(text)
        process = _FORKING.Process(target=_run, args=(argv, variables, streams))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(argv, seconds, streams[1].read_bytes(), streams[2].read_bytes())
        return subprocess.CompletedProcess(argv, process.exitcode, streams[1].read_text(), streams[2].read_text())


def _run(argv: list[str], variables: dict[str, str], streams: list[Path]) -> None:
    from computer_linker.__main__ import main

    os.environ.clear()
    os.environ.update(variables)
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_RDWR | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout = os.fdopen(0, "r", closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.argv = ["computer-linker", *argv]
    sys.exit(main())
