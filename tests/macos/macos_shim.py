"""Makes this Linux interpreter look like macOS to Python code, so that the suites run where macOS's names and files are missing.

Loaded at interpreter start by a .pth file of the environment that `run.py` makes, so child processes have it too. It takes away
what macOS lacks (names, modules' members, /proc and /sys, Linux system calls by ctypes) and adds what macOS has instead
(LOCAL_PEERCRED, F_FULLFSYNC, F_GETPATH, libproc), computed from Linux. It is no macOS: what only that system's kernel,
frameworks and file systems do is not shown by it.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import ctypes
import errno
import fcntl
import importlib.util
import os
import platform
import posix
import select
import signal
import struct
import sys
from types import ModuleType
from typing import Any

_ABSENT_SOCKET = (
    "SO_PEERCRED", "SCM_CREDENTIALS", "SO_PASSCRED", "SO_PASSSEC", "SO_PEERSEC", "AF_NETLINK", "AF_VSOCK", "AF_PACKET", "AF_ALG",
    "SOCK_CLOEXEC", "SOCK_NONBLOCK", "TCP_INFO", "TCP_USER_TIMEOUT", "TCP_QUICKACK", "TCP_DEFER_ACCEPT", "MSG_CMSG_CLOEXEC",
    "SO_DOMAIN", "SO_PROTOCOL", "SO_BINDTODEVICE", "SO_MARK", "SO_INCOMING_CPU", "MSG_NOSIGNAL", "IP_RECVTOS",
)  # fmt: skip
_ABSENT_OS = (
    "pidfd_open", "P_PIDFD", "memfd_create", "eventfd", "eventfd_read", "eventfd_write", "splice", "getrandom", "setns", "unshare",
    "sched_getaffinity", "sched_setaffinity", "sched_setscheduler", "sched_getscheduler", "SCHED_BATCH", "SCHED_IDLE",
    "posix_fadvise", "posix_fallocate", "O_PATH", "O_TMPFILE", "O_DIRECT", "O_LARGEFILE", "O_NOATIME",
    "getxattr", "setxattr", "listxattr", "removexattr", "copy_file_range", "pipe2", "fdatasync", "login_tty",
    "setresuid", "setresgid", "getresuid", "getresgid", "waitid",
)  # fmt: skip
_ABSENT_SIGNAL = (
    "pidfd_send_signal", "sigtimedwait", "sigwaitinfo", "SIGRTMIN", "SIGRTMAX", "SIGPWR", "SIGSTKFLT", "SIGPOLL",
)  # fmt: skip
_ABSENT_FCNTL = (
    "F_OFD",
    "F_SETPIPE",
    "F_GETPIPE",
    "F_ADD_SEALS",
    "F_GET_SEALS",
    "F_SEAL",
    "F_NOTIFY",
    "DN_",
    "F_SETLEASE",
)
_HIDDEN = ("/proc", "/sys")
_LINUX_CALLS = (
    "syscall", "prctl", "unshare", "setns", "mount", "umount2", "inotify_init1", "inotify_add_watch", "renameat2", "memfd_create",
    "pivot_root", "epoll_create1", "signalfd", "getxattr", "statx", "personality",
)  # fmt: skip
_LOCAL_PEERCRED, _LOCAL_PEERPID = 1, 2
_F_GETPATH, _F_FULLFSYNC = 50, 51
_real_open, _real_readlink = os.open, os.readlink
_real_listxattr, _real_getxattr, _real_setxattr = os.listxattr, os.getxattr, os.setxattr


def install() -> None:
    """Change this interpreter; called once, before anything of ours is imported."""
    sys.platform = "darwin"
    peer_credentials = _socket.SO_PEERCRED
    _remove(_ABSENT_SOCKET, _socket)
    _remove(_ABSENT_OS, posix, os)
    _remove(_ABSENT_SIGNAL, _signal, signal)
    _remove(tuple(name for name in dir(select) if name.lower().startswith("epoll")), select)
    _remove(tuple(name for name in dir(fcntl) if name.startswith(_ABSENT_FCNTL)), fcntl)
    _replace_uname()
    _replace_sockets(peer_credentials)
    _replace_fcntl()
    _hide_files()
    _replace_libraries()
    sys.modules["_scproxy"] = _system_proxies()
    sys.meta_path.insert(0, _TrustByOpenssl())
    os.environ.setdefault("_PYTHON_SYSCONFIGDATA_NAME", "_sysconfigdata__linux_x86_64-linux-gnu")


def _remove(names: tuple[str, ...], *modules: ModuleType) -> None:
    for module in modules:
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


def _replace_uname() -> None:
    real = posix.uname()
    shown = posix.uname_result(("Darwin", real.nodename, "23.6.0", "Darwin Kernel Version 23.6.0", "arm64"))
    os.uname = posix.uname = lambda: shown
    platform.mac_ver = lambda *_: ("14.6", ("", "", ""), "arm64")


def _replace_sockets(peer_credentials: int) -> None:
    """LOCAL_PEERCRED and LOCAL_PEERPID of level 0 (SOL_LOCAL) instead of SO_PEERCRED."""
    real = _socket.socket

    class Socket(real):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def getsockopt(self, level: int, name: int, size: int = 0) -> Any:
            if self.family != _socket.AF_UNIX or level != 0:
                if (level, name) in ((_socket.SOL_SOCKET, peer_credentials), (_socket.SOL_SOCKET, 77)):
                    raise OSError(errno.ENOPROTOOPT, "Protocol not available")
                return super().getsockopt(level, name, size) if size else super().getsockopt(level, name)
            pid, uid, gid = struct.unpack("iII", super().getsockopt(_socket.SOL_SOCKET, peer_credentials, 12))
            if name == _LOCAL_PEERPID:
                return struct.pack("i", pid) if size else pid
            if name == _LOCAL_PEERCRED:
                return struct.pack("IIh2x16I", 0, uid, 1, gid, *([0] * 15))[:size]
            raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    _socket.socket = Socket  # type: ignore[misc]
    _socket.SocketType = Socket


def _replace_fcntl() -> None:
    real = fcntl.fcntl
    fcntl.F_GETPATH, fcntl.F_FULLFSYNC = _F_GETPATH, _F_FULLFSYNC  # type: ignore[attr-defined]

    def shown(fd: Any, command: int, argument: Any = 0) -> Any:
        number = fd if isinstance(fd, int) else fd.fileno()
        if command == _F_FULLFSYNC:
            os.fsync(number)
            return 0
        if command == _F_GETPATH:
            return os.fsencode(_real_readlink(f"/proc/self/fd/{number}")).ljust(len(argument), b"\0")
        return real(fd, command, argument)

    fcntl.fcntl = shown


def _hide_files() -> None:
    """/proc and /sys do not exist, by whichever call they are asked for. `/dev/fd` stays: macOS has it."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir", "os.chdir") and arguments:
            _refuse_hidden(arguments[0])

    sys.addaudithook(audit)
    for name in ("stat", "lstat", "readlink", "access", "link", "chmod", "rename", "open", "statvfs"):
        _guard(name)


def _guard(name: str) -> None:
    real = getattr(os, name)

    def guarded(path: Any, *arguments: Any, **named: Any) -> Any:
        _refuse_hidden(path)
        return real(path, *arguments, **named)

    guarded.__name__ = name
    for supported in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if real in supported:
            supported.add(guarded)
    setattr(os, name, guarded)
    if hasattr(posix, name):
        setattr(posix, name, guarded)


def _refuse_hidden(path: Any) -> None:
    if not isinstance(path, str | bytes | os.PathLike):
        return
    name = os.fsdecode(path)
    if name in _allowed:
        return
    if name.startswith(_HIDDEN) and (
        name in _HIDDEN or name[len("/proc") :].startswith("/") or name.startswith("/sys/")
    ):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _replace_libraries() -> None:
    """libproc, and a C library without Linux's calls."""
    real = ctypes.CDLL

    class Library(real):  # type: ignore[misc, valid-type]
        def __getattr__(self, name: str) -> Any:
            if name in _LINUX_CALLS:
                raise AttributeError(f"symbol not found: {name}")
            if name in _LIBPROC:
                return _LIBPROC[name]
            return super().__getattr__(name)

        def __init__(self, name: str | None, *arguments: Any, **named: Any) -> None:
            # The libraries of macOS that the product names; here the C library answers for them.
            is_theirs = isinstance(name, str) and name.startswith(("/usr/lib/", "libproc", "libSystem"))
            super().__init__(None if is_theirs and name.endswith(".dylib") else name, *arguments, **named)  # type: ignore[union-attr]

    ctypes.CDLL = Library  # type: ignore[misc]


def _proc_pidinfo(pid: int, flavor: int, _argument: int, buffer: Any, size: int) -> int:
    """PROC_PIDTASKALLINFO and PROC_PIDTBSDINFO (sys/proc_info.h): struct proc_bsdinfo, then struct proc_taskinfo."""
    wanted = {2: 232, 3: 136}.get(flavor, 0)
    if not wanted or size < wanted:
        return 0
    try:
        name, _, rest = _read_hidden(f"/proc/{pid}/stat").rpartition(b")")
        uid = int(_read_hidden(f"/proc/{pid}/status").partition(b"\nUid:")[2].split()[0])
    except (OSError, IndexError):
        return 0
    fields = rest.split()
    ticks = int(fields[19])
    raw = bytearray(232)
    struct.pack_into("IIIIII", raw, 0, 0, 5 if fields[0] in (b"Z", b"X") else 2, 0, pid, int(fields[1]), uid)
    struct.pack_into("16s", raw, 48, name.partition(b"(")[2][:15])
    struct.pack_into("QQ", raw, 120, ticks // 100, ticks % 100 * 10_000)
    struct.pack_into(
        "QQQQ", raw, 136, int(fields[20]), int(fields[21]) * 4096, int(fields[11]) * 10**7, int(fields[12]) * 10**7
    )
    ctypes.memmove(buffer, bytes(raw[:wanted]), wanted)
    return wanted


def _flistxattr(fd: int, buffer: Any, size: int, _options: int) -> int:
    names = [name.removeprefix("user.") for name in _real_listxattr(fd) if name.startswith("user.")]
    return _given(b"".join(os.fsencode(name) + b"\0" for name in names), buffer, size)


def _fgetxattr(fd: int, name: bytes, buffer: Any, size: int, _position: int, _options: int) -> int:
    return _given(_real_getxattr(fd, b"user." + name), buffer, size)


def _fsetxattr(fd: int, name: bytes, value: bytes, _size: int, _position: int, _options: int) -> int:
    _real_setxattr(fd, b"user." + name, value)
    return 0


def _given(found: bytes, buffer: Any, size: int) -> int:
    if buffer is not None:
        ctypes.memmove(buffer, found, min(size, len(found)))
    return len(found)


def _mach_timebase_info(ratio: Any) -> int:
    ratio[0], ratio[1] = 1, 1
    return 0


def _sysctlbyname(name: bytes, buffer: Any, size: Any, _new: Any, _length: Any) -> int:
    if name != b"kern.bootsessionuuid":
        return -1
    ctypes.memmove(buffer, _read_hidden("/proc/sys/kernel/random/boot_id").strip().upper() + b"\0", 37)
    return 0


def _proc_listallpids(buffer: Any, size: int) -> int:
    _allowed.append("/proc")
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    finally:
        _allowed.remove("/proc")
    if buffer is None:
        return len(pids)
    kept = pids[: size // 4]
    ctypes.memmove(buffer, struct.pack(f"{len(kept)}i", *kept), 4 * len(kept))
    return len(kept)


def _read_hidden(path: str) -> bytes:
    _allowed.append(path)
    try:
        fd = _real_open(path, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        _allowed.remove(path)
    try:
        return os.read(fd, 65_536)
    finally:
        os.close(fd)


class _TrustByOpenssl:
    """truststore asks macOS's Security framework; here OpenSSL answers for it."""

    @staticmethod
    def find_spec(name: str, path: Any, target: Any = None) -> Any:
        if name != "truststore._macos" or not path:
            return None
        return importlib.util.spec_from_file_location(name, f"{path[0]}/_openssl.py")


def _system_proxies() -> ModuleType:
    module = ModuleType("_scproxy")
    module._get_proxies = dict  # type: ignore[attr-defined]
    module._get_proxy_settings = dict  # type: ignore[attr-defined]
    return module


_allowed: list[str] = []
_LIBPROC: dict[str, Any] = {
    "proc_pidinfo": _proc_pidinfo, "proc_listallpids": _proc_listallpids, "mach_timebase_info": _mach_timebase_info,
    "flistxattr": _flistxattr, "fgetxattr": _fgetxattr, "fsetxattr": _fsetxattr,
    "sysctlbyname": _sysctlbyname,
}  # fmt: skip

install()
