"""OAuth scopes: five plain groups of capabilities. Which of the owner's folders they reach is chosen at consent."""

from computer_linker.model.capability import Capability as C
from computer_linker.model.scope import Scope

GROUPS: dict[str, frozenset[C]] = {
    "linker:read": frozenset({C.FS_READ, C.SEARCH_READ, C.GIT_READ, C.HISTORY_READ, C.ARTIFACT_READ}),
    "linker:write": frozenset({C.FS_WRITE, C.GIT_WRITE, C.ARTIFACT_WRITE}),
    "linker:run": frozenset({C.COMMAND_RUN, C.PROCESS_MANAGE, C.PACKAGE_RUN, C.CODEX_RUN}),
    "linker:desktop": frozenset(
        {
            C.SCREEN_CAPTURE,
            C.DESKTOP_OBSERVE,
            C.DESKTOP_CONTROL,
            C.CLIPBOARD_READ,
            C.CLIPBOARD_WRITE,
            C.APP_CONTROL,
            C.PROCESS_OBSERVE,
            C.NOTIFICATIONS_READ,
            C.SESSION_LOCK,
        }
    ),
    "linker:history": frozenset({C.HISTORY_ALL}),
}
DEFAULT = "linker:read"
EXPLAINED = {
    "linker:read": "read, list and search files and git, and see its own history",
    "linker:write": "change files and the git index",
    "linker:run": "run commands, packages and Codex under the scope's policy; they see the files only with linker:read, "
    "and change them only with linker:write too",
    "linker:desktop": "see the screen and use the desktop",
    "linker:history": "see in the history what every other client did, too",
}


def grants_for(groups: list[str], scopes: list[Scope]) -> list[str]:
    """`scope:capability` for what the groups cover and each chosen scope allows."""
    wanted: frozenset[C] = frozenset().union(*(GROUPS[group] for group in groups if group in GROUPS))
    return sorted(f"{scope.id}:{capability}" for scope in scopes for capability in scope.granted & wanted)


def scopes_to_request(held: frozenset[str], lacking: str) -> str:
    """The OAuth scopes of a client that lacks a capability, and the one it lacks: a new token must cover all the old one did."""
    capabilities = {grant.partition(":")[2] for grant in held}
    wanted = {group_of(lacking)} | {name for name, members in GROUPS.items() if members & capabilities}
    return " ".join(name for name in GROUPS if name in wanted)


def group_of(capability: str) -> str:
    """The OAuth scope a client must ask for to get this capability."""
    return next(name for name, members in GROUPS.items() if capability in members)
