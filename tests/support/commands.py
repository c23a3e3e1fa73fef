"""Runs commands of the program, each in a process of its own."""

import subprocess
import tempfile
from pathlib import Path

from support.forked import IS_MEASURED, PROGRAM, Forked, environment

DEADLINE_S = 180.0


def command(
    home: Path, *words: str | Path, stdin: str = "", seconds: float = DEADLINE_S, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The ended command: its exit code, and what it wrote. Raises TimeoutExpired."""
    argv, variables = [str(word) for word in words], environment(home, **(env or {}))
    if IS_MEASURED:
        return subprocess.run(
            [*PROGRAM, *argv], env=variables, input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        for path, text in zip(streams, (stdin, "", ""), strict=True):
            path.write_text(text)
        process = Forked(argv, variables, streams)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise subprocess.TimeoutExpired(argv, seconds, streams[1].read_bytes(), streams[2].read_bytes()) from None
        return subprocess.CompletedProcess(argv, code, streams[1].read_text(), streams[2].read_text())
