"""Runs a program to its end with real pipes, and does not wait for others that inherited them.

Wine's own services are started by the first program and hold its pipes as long as any program of wine runs.
"""

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_LOOK_S = 0.1


def finished(
    argv: Sequence[str], env: Mapping[str, str] | None = None, *, deadline_s: float, cwd: Path | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run it with an empty input; what it printed by its end. Kills it and raises TimeoutExpired after the deadline."""
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.close()
        told = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        until = time.monotonic() + deadline_s
        with selectors.DefaultSelector() as selector:
            for fd in told:
                os.set_blocking(fd, False)
                selector.register(fd, selectors.EVENT_READ)
            while True:
                has_ended = process.poll() is not None
                ready = selector.select(0 if has_ended else _LOOK_S) if selector.get_map() else []
                for key, _ in ready:
                    if piece := os.read(key.fd, 1 << 16):
                        told[key.fd] += piece
                    else:
                        selector.unregister(key.fd)
                if has_ended and not ready:
                    break
                if not selector.get_map() and not has_ended:
                    process.wait(max(0.0, until - time.monotonic()))
                if time.monotonic() > until:
                    process.kill()
                    raise subprocess.TimeoutExpired(argv, deadline_s)
        out, err = told.values()
        return subprocess.CompletedProcess(argv, process.returncode, bytes(out), bytes(err))
