"""What a scope may allow: the capabilities, and what each implies."""

from enum import StrEnum


class Capability(StrEnum):
    FS_READ = "fs:read"
    FS_WRITE = "fs:write"
    SEARCH_READ = "search:read"
    GIT_READ = "git:read"
    GIT_WRITE = "git:write"
    COMMAND_RUN = "command:run"
    PROCESS_MANAGE = "process:manage"
    PACKAGE_RUN = "package:run"
    CODEX_RUN = "codex:run"
    SCREEN_CAPTURE = "screen:capture"
    DESKTOP_OBSERVE = "desktop:observe"
    DESKTOP_CONTROL = "desktop:control"
    CLIPBOARD_READ = "clipboard:read"
    CLIPBOARD_WRITE = "clipboard:write"
    APP_CONTROL = "app:control"
    PROCESS_OBSERVE = "process:observe"
    """The names of all processes of the computer."""
    NOTIFICATIONS_READ = "notifications:read"
    """What applications showed to the person as notices."""
    SESSION_LOCK = "session:lock"
    """Locking the screen."""
    ARTIFACT_READ = "artifact:read"
    ARTIFACT_WRITE = "artifact:write"
    HISTORY_READ = "history:read"
    """The caller's own events."""
    HISTORY_ALL = "history:all"
    """With `history:read`: the events of all principals in the scope."""


IMPLIED: dict[Capability, frozenset[Capability]] = {
    Capability.FS_READ: frozenset({Capability.SEARCH_READ, Capability.GIT_READ}),
}


def with_implied(granted: frozenset[Capability]) -> frozenset[Capability]:
    """What was granted and what that implies; nothing implies anything but `fs:read`."""
    implied: set[Capability] = set(granted)
    for capability in granted:
        implied |= IMPLIED.get(capability, frozenset())
    return frozenset(implied)
