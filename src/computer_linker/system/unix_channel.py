"""The private channel between the service and the owner's own programs: a Unix socket in the state folder."""

import os
import stat
import struct
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as sockets

Listener = socket
"""What `listen` makes: the bare C type, since the shim must not wait for the `socket` module."""


def connect(home: str, name: str) -> socket:
    """Connect to the running service. Raises OSError when none listens, and when another user does."""
    from computer_linker.system import peer_ids

    link = socket(AF_UNIX, SOCK_STREAM)
    folder, path = _short_path(home, name)
    try:
        link.connect(path)
        if peer_ids(link)[1] not in (os.getuid(), 0):
            raise PermissionError(1, "the service's socket belongs to another user")
    except BaseException:
        link.close()
        raise
    finally:
        if folder is not None:
            os.close(folder)
    return link


def listen(home: str, name: str) -> Listener:
    """Listen on the private socket. The caller holds the lock, so an existing socket is stale and is replaced."""
    listener = socket(AF_UNIX, SOCK_STREAM)
    folder, path = _short_path(home, name)
    if os.path.lexists(path):
        os.unlink(path)  # noqa: PTH108
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(mask)
        if folder is not None:
            os.close(folder)
    listener.listen(128)
    return listener


def send_line(link: socket, line: bytes, fds: tuple[int, ...]) -> None:
    """Send a line, and descriptors with it."""
    link.sendmsg([line], [(SOL_SOCKET, SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else [])


def remove(home: str, name: str, listener: "sockets.socket") -> None:
    """Stop listening. The socket's name goes first, so that no client connects in between."""
    path = os.path.join(home, name)  # noqa: PTH118
    if os.path.lexists(path):
        os.unlink(path)  # noqa: PTH108
    listener.close()


def receive(link: "sockets.socket", size: int) -> tuple[bytes, list[int]]:
    """What has arrived, and the descriptors with it, which the caller closes. Raises BlockingIOError when nothing has."""
    import logging
    from socket import MSG_CTRUNC, recv_fds

    data, fds, flags, _ = recv_fds(link, size, 2)
    if flags & MSG_CTRUNC:
        logging.getLogger(__name__).warning("descriptors were lost on the way in")
    return data, fds


def can_pass(fd: int) -> bool:
    """True for pipes and sockets, which another process can poll; files and terminals are relayed instead."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _short_path(home: str, name: str) -> tuple[int | None, str]:
    """A path of the socket that fits into sun_path for any folder length, and the descriptor it needs."""
    direct = os.path.join(home, name)  # noqa: PTH118
    if len(os.fsencode(direct)) < 100:
        return None, direct
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return folder, f"/proc/self/fd/{folder}/{name}"
