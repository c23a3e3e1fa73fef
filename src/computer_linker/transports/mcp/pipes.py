"""What a client of the line protocol is read from and written to."""

import socket
from collections.abc import Callable
from functools import partial

from computer_linker.system import os

Pipes = tuple[int, int] | socket.socket
"""The descriptors to read from and to write to, or the one socket for both."""


def ends_of(pipes: Pipes) -> tuple[int, int, Callable[[int], bytes], Callable[[memoryview], int]]:
    """The descriptors to watch, and the calls that read and write without waiting."""
    if isinstance(pipes, socket.socket):
        pipes.setblocking(False)
        return pipes.fileno(), pipes.fileno(), pipes.recv, pipes.send
    for fd in pipes:
        os.set_blocking(fd, False)
    return *pipes, partial(os.read, pipes[0]), partial(os.write, pipes[1])
