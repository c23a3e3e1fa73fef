"""Where the state lives, and how to reach the service's private socket.

The stdio shim starts with this, and a client waits for it: so the C module `_socket` (the `socket` module around it imports
enum, selectors and collections, half of the shim's start), no contextlib and no pathlib.
"""

import os
import struct
from _socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

SOCKET_NAME = "service.sock"
BRIDGE_NAME = "bridge.sock"
LOCK_NAME = "service.lock"
LOG_NAME = "service.log"
GREETING_FDS = b"computer-linker/1 mcp-descriptors\n"
GREETING_STREAM = b"computer-linker/1 mcp-stream\n"
GREETING_CONTROL = b"computer-linker/1 control\n"


def state_home() -> str:
    """The state folder: COMPUTER_LINKER_HOME, its older name, or ~/.computer-linker."""
    named = os.environ.get("COMPUTER_LINKER_HOME") or os.environ.get("LOCALPORT_HOME")
    return os.path.abspath(os.path.expanduser(named or "~/.computer-linker"))  # noqa: PTH100, PTH111


def connect(home: str, name: str = SOCKET_NAME) -> socket:
    """Connect to the running service. Raises OSError when none listens, and when another user does."""
    link = socket(AF_UNIX, SOCK_STREAM)
    folder, path = _short_path(home, name)
    try:
        link.connect(path)
        if peer_uid(link) not in (os.getuid(), 0):
            raise PermissionError(1, "the service's socket belongs to another user")
    except BaseException:
        link.close()
        raise
    finally:
        if folder is not None:
            os.close(folder)
    return link


def listen(home: str, name: str = SOCKET_NAME) -> socket:
    """Listen on the private socket. The caller holds the lock, so a socket left behind is dead and is replaced."""
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


def peer_uid(link: socket) -> int:
    """Who is at the other end, as the kernel says."""
    pid_uid_gid = link.getsockopt(SOL_SOCKET, SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", pid_uid_gid)[1])


def _short_path(home: str, name: str) -> tuple[int | None, str]:
    """A name of the socket that fits into sun_path however long the folder's own is, and the descriptor it needs."""
    direct = os.path.join(home, name)  # noqa: PTH118
    if len(os.fsencode(direct)) < 100:
        return None, direct
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return folder, f"/proc/self/fd/{folder}/{name}"
