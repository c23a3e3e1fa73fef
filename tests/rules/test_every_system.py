"""What differs by system is in `system/` and `computer/local/`; every other module is the same on each, and imports on each.

`make test-windows` imports them in Windows Python itself; this shows the same on each run, without wine.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "computer_linker"
LAYER = ("system", "computer/local")
OF_ONE_SYSTEM = frozenset({"fcntl", "grp", "msvcrt", "pty", "pwd", "resource", "termios", "tty", "winreg", "_winapi"})
QUESTIONS = frozenset(
    {"sys.platform", "os.name", "platform.system", "platform.platform", "platform.mac_ver", "platform.win32_ver"}
)

_IMPORTS = r"""
import importlib, pkgutil, sys
import computer_linker

OF_UNIX = ("fcntl", "pty", "termios", "tty", "resource", "pwd", "grp", "syslog", "posix", "readline", "curses")
KEPT = {  # of the names that Windows' own os, select, socket and signal have
    "os": '''path open close read write fstat stat lstat unlink remove rename replace rmdir mkdir makedirs listdir scandir DirEntry
        dup dup2 lseek ftruncate truncate fsync fdopen getpid getppid environ environb getenv urandom access chmod utime link symlink
        readlink pipe umask kill isatty cpu_count getcwd chdir walk fspath fsencode fsdecode strerror stat_result sep pathsep altsep
        linesep devnull defpath curdir pardir extsep name error abort _exit _exists system startfile get_terminal_size terminal_size
        get_inheritable set_inheritable device_encoding O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC O_APPEND F_OK R_OK W_OK X_OK
        SEEK_SET SEEK_CUR SEEK_END supports_fd supports_dir_fd supports_follow_symlinks supports_effective_ids supports_bytes_environ
        PathLike fspath times times_result getlogin waitpid waitstatus_to_exitcode execv execve spawnv P_WAIT P_NOWAIT putenv unsetenv
        removedirs renames sys st abc popen get_exec_path execvp execvpe add_dll_directory''',
    "select": "select error",
    "socket": "AF_INET AF_INET6 AF_UNSPEC SOCK_STREAM SOCK_DGRAM SOCK_RAW SOL_SOCKET SO_REUSEADDR SO_LINGER SO_ACCEPTCONN SO_ERROR "
        "SO_BROADCAST SO_KEEPALIVE SO_RCVBUF SO_SNDBUF SO_TYPE IPPROTO_TCP IPPROTO_IP IPPROTO_IPV6 IPPROTO_UDP TCP_NODELAY IPV6_V6ONLY "
        "SHUT_RD SHUT_WR SHUT_RDWR MSG_PEEK SOMAXCONN AI_PASSIVE AI_CANONNAME AI_NUMERICHOST AI_NUMERICSERV AI_ADDRCONFIG NI_NUMERICHOST "
        "NI_NUMERICSERV EAI_NONAME EAI_AGAIN EAI_FAMILY INADDR_ANY INADDR_LOOPBACK",
    "signal": "SIGINT SIGTERM SIGABRT SIGFPE SIGILL SIGSEGV SIG_DFL SIG_IGN NSIG",
}

def modules():
    for found in pkgutil.walk_packages(computer_linker.__path__, "computer_linker."):
        yield found.name

def import_all(skipped=()):
    failed = []
    for name in modules():
        if name.endswith("__main__") or any(part in name for part in skipped):
            continue
        try:
            importlib.import_module(name)
        except Exception as error:
            failed.append(f"{name}: {error!r}")
    return failed

# Once as it is: other packages and the standard library have their own ways on Windows, and are not what is tested.
import_all()
for name in [name for name in sys.modules if name.split(".")[0] == "computer_linker"]:
    del sys.modules[name]
for name, kept in KEPT.items():
    module = sys.modules[name]
    for member in set(dir(module)) - set(kept.split()):
        # Functions and classes of the socket and signal modules are the same on Windows, but for these.
        if name in ("socket", "signal") and not member.isupper() and member not in ("recv_fds", "send_fds", "pause", "alarm"):
            continue
        if not member.startswith("__"):
            delattr(module, member)
for name in OF_UNIX:
    sys.modules[name] = None
sys.platform = "win32"
computer_linker = importlib.import_module("computer_linker")
ours_alone = (".local.linux", ".local.macos", "system.linux", "system.lineage", "system.proc_files", "system.macos", "system.unix")
print("\n".join(import_all(ours_alone)) or "all")
"""


def test_every_module_is_imported_without_the_names_of_unix() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout.strip(), done.stderr.strip()[-2000:]) == ("all", "")


def questions_in(text: str) -> Iterator[str]:
    """Where a module asks for the system's name, or imports a module that one of the systems lacks."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (asked := f"{node.value.id}.{node.attr}") in QUESTIONS:
                yield f"{node.lineno}: {asked}"
        elif isinstance(node, ast.Import):
            yield from (f"{node.lineno}: import {each.name}" for each in node.names if each.name in OF_ONE_SYSTEM)
        elif isinstance(node, ast.ImportFrom):
            if node.module in OF_ONE_SYSTEM:
                yield f"{node.lineno}: from {node.module}"
            yield from (
                f"{node.lineno}: {asked}" for each in node.names if (asked := f"{node.module}.{each.name}") in QUESTIONS
            )


def test_no_module_outside_the_layer_asks_which_system_it_is() -> None:
    outside = [
        path
        for path in SOURCE.rglob("*.py")
        if not path.relative_to(SOURCE).as_posix().startswith(tuple(f"{part}/" for part in LAYER))
    ]
    assert len(outside) > 500
    assert [f"{path.relative_to(SOURCE)}:{found}" for path in outside for found in questions_in(path.read_text())] == []


@pytest.mark.parametrize(
    "text",
    ["import sys\nsys.platform", "import os\nif os.name == 'nt': pass", "def f():\n import termios", "from resource import prlimit",
     "from sys import platform", "import platform\nplatform.system()"],
)  # fmt: skip
def test_the_rule_sees_each_form_of_the_question(text: str) -> None:
    assert list(questions_in(text))
