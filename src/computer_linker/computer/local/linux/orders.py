"""The messages to a waiting child of the launcher: the root to stage, and the order with the program and its descriptors."""

import io
import marshal
import os
import socket
from typing import Any

from computer_linker.computer.facets.processes import (
    NAMED_RANGE,
    PROXY,
    RESOLVER,
    InnerNetwork,
    Launch,
    Mount,
    ProcessLimits,
    Staging,
)
from computer_linker.computer.local.linux.child_streams import Streams
from computer_linker.computer.local.linux.kernel_rules import compiled, program_filter
from computer_linker.computer.local.linux.launcher_protocol import LONG, MAX_DESCRIPTORS, ORDER, STAGE
from computer_linker.errors import ExecutionFailed, LimitExceeded

_MAX_PACKET = 190_000
"""Fits the default socket buffer; a longer order is passed as a memfd."""
_MAX_ORDER = 8 << 20


def send_order(link: socket.socket, launch: Launch, streams: Streams) -> None:
    """Send a waiting child its order. Raises BrokenPipeError when it has ended."""
    if not launch.wrapped:
        _send(link, launch, streams, None)
        return
    with _in_memory("filter", program_filter(launch.kernel)) as memory:
        _send(link, launch, streams, memory.fileno())


def _send(link: socket.socket, launch: Launch, streams: Streams, filter_fd: int | None) -> None:
    fds = [*streams.theirs, *launch.fds]
    filter_at = None
    if filter_fd is not None:
        filter_at = len(fds)
        fds.append(filter_fd)
    cwd = None
    if launch.cwd_fd is not None:
        cwd = len(fds)
        fds.append(launch.cwd_fd)
    order = {
        "argv": launch.argv,
        "env": launch.env,
        "stdio": streams.stdio,
        "fds": [len(streams.theirs) + at for at in range(len(launch.fds))],
        "cwd": cwd,
        "pty": launch.pty is not None,
        "wrapped": launch.wrapped,
        "gate": launch.gate,
        "limits": _limits(launch.limits),
        "kernel": compiled(launch.kernel),
        "filter": filter_at,
    }
    _send_message(link, ORDER, order, fds)


def send_staging(link: socket.socket, staging: Staging, limits: ProcessLimits, terminal: int | None = None) -> None:
    """Have a waiting child stage the root of an order that follows. Raises BrokenPipeError when it has ended."""
    fds = [*staging.fds, *(() if terminal is None else (terminal,))]
    if len(fds) >= MAX_DESCRIPTORS:
        raise LimitExceeded("The scope has too many folders for one command.", folders=len(fds), limit=MAX_DESCRIPTORS)
    message = {
        "room": staging.room_bytes,
        "ids": staging.other_ids or 0,
        "held": list(range(len(staging.fds))),
        "terminal": None if terminal is None else len(staging.fds),
        "mounts": [_mount(mount) for mount in staging.mounts],
        "network": None if staging.network is None else _network(staging.network),
        "limits": _limits(limits),
    }
    _send_message(link, STAGE, message, fds)


def _limits(limits: ProcessLimits) -> dict[str, int]:
    return {
        "processes": limits.processes or 0,
        "memory_bytes": limits.memory_bytes or 0,
        "file_bytes": limits.file_bytes,
    }


def _send_message(link: socket.socket, kind: int, message: dict[str, Any], fds: list[int]) -> None:
    first, packet = bytes((kind,)), marshal.dumps(message)
    if len(packet) > _MAX_ORDER:
        raise LimitExceeded(
            "The command, its environment and the names to close in its folders are too long.",
            bytes=len(packet),
            limit=_MAX_ORDER,
        )
    try:
        if len(packet) > _MAX_PACKET:
            _send_long(link, first, packet, fds)
        else:
            socket.send_fds(link, [first, packet], fds)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ExecutionFailed("The system could not start the command; try again.") from error


def _send_long(link: socket.socket, first: bytes, packet: bytes, fds: list[int]) -> None:
    with _in_memory("order", packet) as memory:
        socket.send_fds(link, [first, LONG], [*fds, memory.fileno()])


def _in_memory(name: str, data: bytes) -> io.FileIO:
    """A file in memory, at its beginning."""
    memory = io.FileIO(os.memfd_create(name, os.MFD_CLOEXEC), "r+")
    left = memoryview(data)
    while left:
        left = left[memory.write(left) :]
    memory.seek(0)
    return memory


def _network(network: InnerNetwork) -> dict[str, Any]:
    return {
        "ports": network.ports,
        "addresses": network.addresses,
        "resolver": RESOLVER,
        "proxy": PROXY,
        "range": NAMED_RANGE,
    }


def _mount(mount: Mount) -> tuple[Any, ...]:
    at = os.fsencode(mount.at.strip("/"))
    match mount.kind:
        case "system" | "room" | "devices":
            return mount.kind, at
        case "shown":
            return mount.kind, at, mount.index, mount.read_only
        case "view" | "copied":
            return mount.kind, at, mount.index, mount.store, os.fsencode(mount.target)
        case "link" | "file":
            return mount.kind, at, mount.target
        case _:
            return mount.kind, at, mount.device, mount.inode
