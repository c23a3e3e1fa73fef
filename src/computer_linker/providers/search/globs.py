"""Checks a caller's glob before ripgrep parses it; ripgrep itself refuses a malformed one."""

from computer_linker.errors import InvalidRequest

_MAX_GLOB = 512
_MAX_GROUPS = 8


def check_glob(pattern: str) -> None:
    """Refuse a glob that is empty, too long, contains `..`, or has groups that multiply."""
    if not pattern.removeprefix("!") or len(pattern) > _MAX_GLOB or any(char in pattern for char in "\0\n\r"):
        raise InvalidRequest(f"A glob has 1 to {_MAX_GLOB} characters on one line.", field="glob")
    if ".." in pattern.split("/"):
        raise InvalidRequest("A glob cannot contain `..`.", field="glob")
    if pattern.count("{") > _MAX_GROUPS:
        raise InvalidRequest(f"A glob has at most {_MAX_GROUPS} groups in braces.", field="glob")


def is_everything(pattern: str) -> bool:
    """True for a glob that matches everything."""
    return pattern in ("*", "**", "**/*", "/**", "./**", "**/**")


def escaped(name: str) -> str:
    """A glob that matches exactly this name."""
    return "".join("\\" + char if char in "*?[]{}\\!#, " else char for char in name)
