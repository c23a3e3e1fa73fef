"""The private channel between the service and the owner's own programs: a named pipe that this user alone may open.

The rest of the program works with sockets, so each end of a pipe is joined to one. At the service a loopback listener takes
those sockets; a connection that comes from elsewhere has no entry in the table of peers and is refused as another user's.
"""

import ctypes
import hashlib
import os
import socket
import threading
from ctypes import wintypes
from importlib import import_module
from typing import Any

from computer_linker.system.windows import nt
from computer_linker.system.windows.security import for_the_owner, is_own, own_sid

Listener = socket.socket
_READ_WRITE, _OVERLAPPED, _FIRST_INSTANCE = 0x3, 0x40000000, 0x00080000
_MESSAGES, _LOCAL_ONLY, _MOST_INSTANCES, _BUFFER = 0x4 | 0x2, 0x8, 255, 1 << 16
_IDENTIFY_ONLY = 0x00100000 | 0x00010000
"""SECURITY_SQOS_PRESENT, SECURITY_IDENTIFICATION: the server of the pipe may not act as this user."""
_BUSY, _CONNECTED, _BUSY_WAIT_MS = 231, 535, 5000
_DATA, _END = b"d", b"e"
_peers: dict[int, int] = {}
"""The process behind each joined socket, by the socket's port."""
_ends: dict[str, threading.Event] = {}
"""The event that ends each listener's pipe, by the pipe's name."""


def peer_ids(link: socket.socket) -> tuple[int, int]:
    """The process id of the peer, and 0 for this user; -1 for another one, and for what did not come through the pipe."""
    pid = _peers.get(link.getpeername()[1], 0)
    return pid, 0 if pid and is_own(pid) else -1


def pipe_name(home: str, name: str) -> str:
    """The pipe of a state folder and user."""
    place = os.path.realpath(home).casefold()
    told = hashlib.blake2b(f"{own_sid()}\n{place}\n{name}".encode("utf-8", "surrogatepass"), digest_size=16)
    return rf"\\.\pipe\computer-linker-{told.hexdigest()}"


def connect(home: str, name: str) -> socket.socket:
    """Connect to the running service. Raises OSError when none listens, and when another user does."""
    pipes = _winapi()
    path = pipe_name(home, name)
    while True:
        try:
            access = pipes.GENERIC_READ | pipes.GENERIC_WRITE
            handle = pipes.CreateFile(
                path, access, 0, pipes.NULL, pipes.OPEN_EXISTING, _OVERLAPPED | _IDENTIFY_ONLY, pipes.NULL
            )
            break
        except OSError as error:
            if getattr(error, "winerror", 0) != _BUSY:
                raise
            pipes.WaitNamedPipe(path, _BUSY_WAIT_MS)
    pipes.SetNamedPipeHandleState(handle, pipes.PIPE_READMODE_MESSAGE, None, None)
    server = wintypes.DWORD()
    if not nt.kernel32().GetNamedPipeServerProcessId(handle, ctypes.byref(server)) or not is_own(server.value):
        nt.close(handle)
        raise PermissionError(1, "the service's pipe belongs to another user")
    near, far = _pair()
    _join(handle, far)
    return near


def listen(home: str, name: str) -> Listener:
    """Listen on the private pipe. The caller holds the lock."""
    path = pipe_name(home, name)
    first = _instance(path, is_first=True)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = listener.getsockname()[1]
    _ends[path] = threading.Event()
    threading.Thread(target=_accept, args=(path, first, port, _ends[path]), daemon=True).start()
    return listener


def remove(home: str, name: str, listener: socket.socket) -> None:
    """Stop listening; what is connected stays."""
    end = _ends.pop(pipe_name(home, name), None)
    if end is not None:
        end.set()
        # Wakes the thread that waits for the next client, which then ends the pipe.
        try:
            connect(home, name).close()
        except OSError:
            pass
    listener.close()


def send_line(link: socket.socket, line: bytes, fds: tuple[int, ...]) -> None:
    """Send a line. No descriptors pass through a pipe here."""
    assert not fds
    link.sendall(line)


def receive(link: socket.socket, size: int) -> tuple[bytes, list[int]]:
    """What has arrived. Raises BlockingIOError when nothing has."""
    return link.recv(size), []


def can_pass(fd: int) -> bool:
    """False: a client's own pipes stay with the program it started, which relays."""
    return False


def _instance(path: str, *, is_first: bool) -> int:
    pipes = _winapi()
    with for_the_owner() as attributes:
        handle: int = pipes.CreateNamedPipe(
            path,
            _READ_WRITE | _OVERLAPPED | (_FIRST_INSTANCE if is_first else 0),
            _MESSAGES | _LOCAL_ONLY,
            _MOST_INSTANCES,
            _BUFFER,
            _BUFFER,
            0,
            ctypes.addressof(attributes),
        )
    return handle


def _accept(path: str, handle: int, port: int, end: threading.Event) -> None:
    pipes = _winapi()
    while True:
        try:
            waiting = pipes.ConnectNamedPipe(handle, overlapped=True)
            waiting.GetOverlappedResult(True)
        except OSError as error:
            if getattr(error, "winerror", 0) != _CONNECTED:
                nt.close(handle)
                handle = _instance(path, is_first=False)
                continue
        if end.is_set():
            nt.close(handle)
            return
        following = _instance(path, is_first=False)
        _admit(handle, port)
        handle = following


def _admit(handle: int, port: int) -> None:
    """Join a client's pipe to a connection of the loopback listener."""
    client = wintypes.DWORD()
    nt.kernel32().GetNamedPipeClientProcessId(handle, ctypes.byref(client))
    link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        link.bind(("127.0.0.1", 0))
        own = link.getsockname()[1]
        _peers[own] = client.value
        link.connect(("127.0.0.1", port))
    except OSError:
        link.close()
        nt.close(handle)
        return
    _join(handle, link, lambda: _peers.pop(own, None))


def _join(handle: int, link: socket.socket, ended: Any = lambda: None) -> None:
    """Copy between a pipe and a socket by two threads, which own both and close them when both directions have ended."""
    pipe = import_module("multiprocessing.connection").PipeConnection(handle)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    left = [2]
    lock = threading.Lock()

    def run(copy: Any) -> None:
        try:
            copy(pipe, link)
        except (OSError, EOFError):
            # Broken on one side: both directions end.
            _shut(link, socket.SHUT_RDWR)
        with lock:
            left[0] -= 1
            is_last = left[0] == 0
        if is_last:
            ended()
            link.close()
            pipe.close()

    for copy in (_from_pipe, _to_pipe):
        threading.Thread(target=run, args=(copy,), daemon=True).start()


def _from_pipe(pipe: Any, link: socket.socket) -> None:
    while (message := pipe.recv_bytes())[:1] == _DATA:
        link.sendall(message[1:])
    _shut(link, socket.SHUT_WR)


def _to_pipe(pipe: Any, link: socket.socket) -> None:
    while data := link.recv(_BUFFER):
        pipe.send_bytes(_DATA + data)
    pipe.send_bytes(_END)


def _shut(link: socket.socket, how: int) -> None:
    try:
        link.shutdown(how)
    except OSError:
        pass


def _pair() -> tuple[socket.socket, socket.socket]:
    """Two joined sockets; the standard library's pair does not check before 3.12 that the peer is its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        while True:
            near = socket.create_connection(listener.getsockname())
            far, _ = listener.accept()
            if far.getpeername() == near.getsockname():
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return near, far
            near.close()
            far.close()


def _winapi() -> Any:
    return import_module("_winapi")
