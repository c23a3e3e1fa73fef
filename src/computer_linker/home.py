"""The state folder, the connection to the service's private socket, and the proof of being the owner's own program.

The service sends a challenge; a client answers with its greeting and a keyed digest of both. The key is `owner.key` in the state
folder, which no scope and no sandbox can read.

The stdio shim imports this while a client waits: so the C module `_socket` (the `socket` module around it imports
enum, selectors and collections, half of the shim's start), no contextlib and no pathlib.
"""

from _socket import socket

from computer_linker.system import channel, os, try_lock

SOCKET_NAME = "service.sock"
BRIDGE_NAME = "bridge.sock"
LOCK_NAME = "service.lock"
LOG_NAME = "service.log"
KEY_NAME = "owner.key"
MARK_NAME = ".computer-linker-state"
"""An empty file in every state folder, by which other services know it: they close it to their scopes."""
LOCK_HELD = 75
"""Exit code (EX_TEMPFAIL) of an on-demand service when a command or another service has this state folder."""
GREETING_FDS = b"computer-linker/2 mcp-descriptors"
GREETING_STREAM = b"computer-linker/2 mcp-stream"
GREETING_CONTROL = b"computer-linker/2 control"
CHALLENGE = b"computer-linker/2 challenge "
WELCOME = b"computer-linker/2 welcome"
REFUSED = b"computer-linker/2 refused "
CHOICE_VARIABLES = ("COMPUTER_LINKER_RENDER", "COMPUTER_LINKER_MCP_TOOL_SURFACE", "LOCALPORT_MCP_TOOL_SURFACE")
"""Variables of one client's environment that concern its connection alone."""
_CHOICES = (("render", CHOICE_VARIABLES[:1]), ("surface", CHOICE_VARIABLES[1:]))
_KEY_BYTES = 32
_MAX_LINE = 512


def state_home() -> str:
    """The state folder: COMPUTER_LINKER_HOME, its older name, or ~/.computer-linker."""
    named = os.environ.get("COMPUTER_LINKER_HOME") or os.environ.get("LOCALPORT_HOME")
    return os.path.abspath(os.path.expanduser(named or "~/.computer-linker"))


def is_marked(fd: int, folder: str = "") -> bool:
    """Whether a folder carries the mark of a state folder: an open one, or one below it."""
    # Not `os.stat`: an exception for each folder without one takes longer than the call.
    return os.access(f"{folder}/{MARK_NAME}" if folder else MARK_NAME, os.F_OK, dir_fd=fd)


def enter(home: str, greeting: bytes, fds: tuple[int, ...] = (), within_s: float | None = None) -> socket:
    """Connect and authenticate as the owner's own program.

    Raises PermissionError with the reason when the service refuses, another OSError when none listens or it ends.
    """
    link = connect(home)
    link.settimeout(within_s)
    return greet(link, home, greeting, fds)


def greet(link: socket, home: str, greeting: bytes, fds: tuple[int, ...] = ()) -> socket:
    """Authenticate on a connection, which is closed on failure. Raises as `enter` does."""
    try:
        challenge = _line(link)
        if challenge.startswith(CHALLENGE):
            line = greeting + b" " + proof(_key(home), challenge, greeting) + b"\n"
            channel.send_line(link, line, fds)
        answer = _line(link) if challenge.startswith(CHALLENGE) else challenge
        if answer != WELCOME:
            raise PermissionError(1, answer.removeprefix(REFUSED).decode("utf-8", "replace"))
    except BaseException:
        link.close()
        raise
    return link


def chosen(environment: dict[str, str]) -> dict[str, str]:
    """What a client's environment chose for its connection: its rendering and its tools."""
    found = {}
    for word, variables in _CHOICES:
        value = next((environment[variable] for variable in variables if environment.get(variable)), "")
        if value.isascii() and value.isalpha() and len(value) <= 20:
            found[word] = value
    return found


def greeting_with(name: bytes, choices: dict[str, str]) -> bytes:
    """The greeting, and the choices after it."""
    return name + "".join(f" {word}={value}" for word, value in choices.items()).encode()


def read_greeting(greeting: bytes) -> tuple[bytes, dict[str, str]]:
    """The name of a greeting, and the choices after it."""
    parts = greeting.decode("latin-1").split(" ")
    choices = dict(part.split("=", 1) for part in parts[2:] if "=" in part)
    return " ".join(parts[:2]).encode(), choices


def proof(key: bytes, challenge: bytes, greeting: bytes) -> bytes:
    """Return the response to this challenge for this purpose; it requires the key."""
    from _blake2 import blake2b

    return blake2b(challenge + b"\n" + greeting, key=key, digest_size=32).hexdigest().encode()


def make_key(home: str) -> bytes:
    """Write a new key. Each service run makes its own: a copied key is useless after a restart."""
    key = os.urandom(_KEY_BYTES)
    path = os.path.join(home, KEY_NAME)
    fresh = f"{path}.{os.getpid()}.new"
    if os.path.lexists(fresh):
        os.unlink(fresh)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, key)
    finally:
        os.close(fd)
    os.replace(fresh, path)
    return key


def _key(home: str) -> bytes:
    remedy = "restart the service, which makes a new one"
    try:
        fd = os.open(os.path.join(home, KEY_NAME), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise PermissionError(1, f"the owner's key {KEY_NAME} cannot be read ({error.strerror}); {remedy}") from None
    try:
        facts = os.fstat(fd)
        if facts.st_mode & 0o077 or facts.st_uid not in (os.getuid(), 0):
            raise PermissionError(1, f"the owner's key {KEY_NAME} is open to other users; {remedy}")
        return os.read(fd, 2 * _KEY_BYTES)
    finally:
        os.close(fd)


def _line(link: socket) -> bytes:
    """Read one line and nothing after it. Raises ConnectionResetError when the service ends first."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _MAX_LINE:
        byte = link.recv(1)
        if not byte:
            raise ConnectionResetError(104, "the service ended the connection")
        line += byte
    return line[:-1]


def connect(home: str, name: str = SOCKET_NAME) -> socket:
    """Connect to the running service. Raises OSError when none listens, and when another user does."""
    return channel.connect(home, name)


def listen(home: str, name: str = SOCKET_NAME) -> socket:
    """Listen on the private channel. The caller holds the lock, so a listener that is left there is stale and is replaced."""
    return channel.listen(home, name)


def take_lock(home: str) -> int | None:
    """A descriptor that holds the state folder's lock; None when another service has it."""
    fd = os.open(os.path.join(home, LOCK_NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not try_lock(fd):
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    os.close(os.open(os.path.join(home, MARK_NAME), os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    return fd
