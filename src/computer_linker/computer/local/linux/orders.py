"""The order for a waiting child of the launcher: one packet with the program and its descriptors."""

import marshal
import os
import socket
from typing import Any

from computer_linker.computer.facets.processes import Launch, Mount, Staging
from computer_linker.computer.local.linux.child_streams import Streams
from computer_linker.computer.local.linux.kernel_rules import compiled
from computer_linker.computer.local.linux.launcher_protocol import LONG, MAX_DESCRIPTORS
from computer_linker.errors import ExecutionFailed, LimitExceeded

_MAX_PACKET = 190_000
"""Fits the default socket buffer; a longer order is passed as a memfd."""
_MAX_ORDER = 8 << 20


def send_order(link: socket.socket, launch: Launch, streams: Streams) -> None:
    """Send a waiting child its order. Raises BrokenPipeError when it has ended."""
    fds = [*streams.theirs, *launch.fds]
    cwd = None
    if launch.cwd_fd is not None:
        cwd = len(fds)
        fds.append(launch.cwd_fd)
    staging = None
    if launch.staging is not None:
        staging = _staging(launch.staging, len(fds))
        fds += launch.staging.fds
    if len(fds) >= MAX_DESCRIPTORS:
        raise LimitExceeded("The scope has too many folders for one command.", folders=len(fds), limit=MAX_DESCRIPTORS)
    order = {
        "argv": launch.argv,
        "env": launch.env,
        "stdio": streams.stdio,
        "fds": [len(streams.theirs) + at for at in range(len(launch.fds))],
        "cwd": cwd,
        "pty": launch.pty is not None,
        "wrapped": launch.wrapped,
        "gate": launch.gate,
        "limits": {
            "processes": launch.limits.processes or 0,
            "memory_bytes": launch.limits.memory_bytes or 0,
            "file_bytes": launch.limits.file_bytes,
        },
        "kernel": compiled(launch.kernel),
        "staging": staging,
    }
    packet = marshal.dumps(order)
    if len(packet) > _MAX_ORDER:
        raise LimitExceeded(
            "The command, its environment and the names to close in its folders are too long.",
            bytes=len(packet),
            limit=_MAX_ORDER,
        )
    try:
        if len(packet) > _MAX_PACKET:
            _send_long(link, packet, fds)
        else:
            socket.send_fds(link, [packet], fds)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ExecutionFailed("The system could not start the command; try again.") from error


def _send_long(link: socket.socket, packet: bytes, fds: list[int]) -> None:
    with open(os.memfd_create("order", os.MFD_CLOEXEC), "w+b", buffering=0) as memory:
        left = memoryview(packet)
        while left:
            left = left[memory.write(left) :]
        socket.send_fds(link, [LONG], [*fds, memory.fileno()])


def _staging(staging: Staging, first: int) -> dict[str, Any]:
    return {
        "room": staging.room_bytes,
        "ids": staging.other_ids or 0,
        "held": list(range(first, first + len(staging.fds))),
        "mounts": [_mount(mount) for mount in staging.mounts],
    }


def _mount(mount: Mount) -> tuple[Any, ...]:
    at = os.fsencode(mount.at.strip("/"))
    match mount.kind:
        case "system" | "room" | "devices":
            return mount.kind, at
        case "shown":
            return mount.kind, at, mount.index, mount.read_only
        case "view":
            return mount.kind, at, mount.index, mount.store
        case "link":
            return mount.kind, at, mount.target
        case _:
            return mount.kind, at, mount.device, mount.inode
