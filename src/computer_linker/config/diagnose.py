"""Findings about a config that loads: what is wrong or unwise, what would help, and whether `doctor --fix` can do it.

An `error` keeps a scope from working or exposes more than a person would want; the service is then not ready.
A `warning` is worth a look. What is refused outright (`/` as a root, a root in the state folder) is in runtime.py.
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from computer_linker.config.defaults import BOOTSTRAP_SCOPE, EXECUTES
from computer_linker.config.load import CONFIG_NAME
from computer_linker.config.overlaps import narrower_of, real_roots, unasked
from computer_linker.config.private import READABLE_BY_OTHERS
from computer_linker.config.roots import is_deleted
from computer_linker.config.runtime import state_inside
from computer_linker.config.schema import Config
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.scope import Scope
from computer_linker.system import os

Severity = Literal["error", "warning", "info"]
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Finding(Model):
    """One problem found, with its remedy."""

    severity: Severity
    code: str
    message: str
    remedy: str
    scope: str | None = None
    fixable: bool = False


def _finding(
    severity: Severity, code: str, message: str, remedy: str, scope: str | None = None, *, fixable: bool = False
) -> Finding:
    return Finding(severity=severity, code=code, message=message, remedy=remedy, scope=scope, fixable=fixable)


def is_loopback(host: str) -> bool:
    """True for an address that only this machine can reach."""
    return host in _LOOPBACK or host.startswith("127.")


REFUSED = "config_refused"


def diagnose(config: Config, home: Path) -> list[Finding]:
    """Every finding, errors first."""
    found = [
        *_refused(config),
        *_private(home),
        *_exposure(config),
        *_scopes(config, home),
        *_overlaps(config),
        *_unasked(config),
    ]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda finding: order[finding.severity])


def _refused(config: Config) -> Iterator[Finding]:
    closed = ", ".join(scope.id for scope in config.scopes if scope.is_closed)
    state = f"closed until fixed: {closed}" if closed else "what was valid before and is unchanged stays in force"
    for sentence in config.refused:
        yield _finding(
            "error" if closed else "warning",
            REFUSED,
            f"config.json is not valid, {'' if closed else 'so '}{state}. {sentence}",
            "Run: computer-linker doctor --fix",
        )


def _private(home: Path) -> Iterator[Finding]:
    for path, mode in ((home, "700"), (home / CONFIG_NAME, "600")):
        if path.exists() and os.stat(path).st_mode & READABLE_BY_OTHERS:
            what = "The state folder" if path == home else CONFIG_NAME
            yield _finding(
                "warning",
                "state_readable",
                f"{what} can be read by other users of this computer.",
                f"Run: chmod {mode} {path}",
                fixable=True,
            )


def _exposure(config: Config) -> Iterator[Finding]:
    if config.owner_token is None:
        severity: Severity = "warning" if is_loopback(config.host) else "error"
        yield _finding(
            severity,
            "no_owner_token",
            "HTTP clients need no token: every program on this computer can use the scopes."
            if severity == "warning"
            else f"The service would listen on {config.host} without a token, so it refuses to start.",
            "Run: computer-linker token rotate",
        )
    elif not is_loopback(config.host):
        yield _finding(
            "warning",
            "not_loopback",
            f"The service listens on {config.host}; other machines can reach it with the token.",
            "Run: computer-linker config set host 127.0.0.1, unless you mean it",
        )
    if config.tunnel.provider is not None and config.owner_token is None:
        yield _finding(
            "error",
            "tunnel_without_token",
            f"The config asks for a {config.tunnel.provider} tunnel, and without an owner token none is opened.",
            "Run: computer-linker token rotate, or: computer-linker tunnel stop",
        )
    if config.public_base_url is not None and config.public_base_url.startswith("http://"):
        yield _finding(
            "warning",
            "public_url_not_https",
            "publicBaseUrl is not https; tokens would travel in clear.",
            "Run: computer-linker config set publicBaseUrl https://NAME",
        )


def _scopes(config: Config, home: Path) -> Iterator[Finding]:
    if not config.scopes:
        yield _finding(
            "error",
            "no_scopes",
            f"No scope is configured in the state folder {home}{_is_default(home)}, so clients can do nothing.",
            "Run: computer-linker scope add FOLDER",
        )
    state = Path(os.path.realpath(home))
    for scope in config.scopes:
        for root in scope.roots:
            yield from _root(scope, root, state)
        yield from _execution(scope)
        if scope.id == BOOTSTRAP_SCOPE and len(config.scopes) > 1:
            yield _finding(
                "warning",
                "bootstrap_scope",
                "The first-run scope `current` is still there beside the scopes you chose.",
                "Run: computer-linker doctor --fix",
                scope.id,
                fixable=True,
            )


def _is_default(home: Path) -> str:
    return " (the default one)" if home == Path.home() / ".computer-linker" else ""


def _root(scope: Scope, root: str, state: Path) -> Iterator[Finding]:
    if root in scope.refused:
        sentence = scope.refused[root].partition(" If that is meant")[0]
        yield _finding(
            "error",
            "root_changed",
            sentence,
            f"Run: computer-linker scope confirm {scope.id}, if you mean it",
            scope.id,
        )
    try:
        mode = os.stat(root).st_mode
    except OSError:
        yield _finding(
            "warning",
            "root_missing",
            f"The folder {root} does not exist or cannot be opened.",
            "Run: computer-linker doctor --fix, which takes it out of the scope; or put the folder back"
            if is_deleted(root)
            else "Put the folder back, or mount its drive",
            scope.id,
            fixable=is_deleted(root),
        )
        return
    if not stat.S_ISDIR(mode):
        yield _finding(
            "error",
            "root_not_a_folder",
            f"{root} is not a folder.",
            f"Run: computer-linker scope edit {scope.id} --root FOLDER",
            scope.id,
        )
    elif mode & stat.S_IWOTH:
        yield _finding(
            "warning",
            "root_writable_by_all",
            f"Any user of this computer can change {root}.",
            f"Run: chmod o-w {root}",
            scope.id,
        )
    if state_inside(root, state) is not None:
        yield _finding(
            "warning",
            "root_contains_state",
            f"{root} contains the service's own state folder, which is kept out of the scope.",
            f"Run: computer-linker scope edit {scope.id} --root FOLDER, with a narrower folder",
            scope.id,
        )


def _execution(scope: Scope) -> Iterator[Finding]:
    if not EXECUTES & set(scope.capabilities):
        return
    if scope.policy.allowed_commands is None:
        yield _finding(
            "warning",
            "no_command_policy",
            f"Scope {scope.id} can start programs and has no list of allowed commands.",
            "Run: computer-linker doctor --fix",
            scope.id,
            fixable=True,
        )
    if scope.policy.sandbox == "off":
        yield _finding(
            "warning",
            "sandbox_off",
            f"Programs started in scope {scope.id} are not held inside its folders.",
            f"Run: computer-linker scope edit {scope.id} --policy sandbox=auto",
            scope.id,
        )


def _overlaps(config: Config) -> Iterator[Finding]:
    folders = [scope for scope in config.scopes if scope.type == "folder"]
    for index, later in enumerate(folders):
        for earlier in folders[:index]:
            if real_roots(earlier) == real_roots(later):
                yield _same_folder(earlier, later)
            elif Capability.FS_WRITE in earlier.granted ^ later.granted:
                yield from _nested(earlier, later)


def _nested(one: Scope, other: Scope) -> Iterator[Finding]:
    narrow = narrower_of(one, other)
    if narrow is None:
        return
    wide = other if narrow is one else one
    holds = (
        f"clients can change its folder, though {wide.id} around it is read-only"
        if Capability.FS_WRITE in narrow.granted
        else f"its folder is read-only through {wide.id} too"
    )
    yield _finding(
        "info",
        "overlap",
        f"Scope {narrow.id} lies inside scope {wide.id}: {holds}.",
        "Nothing to do if that is what you mean.",
        narrow.id,
    )


def _unasked(config: Config) -> Iterator[Finding]:
    for found in unasked(config.scopes):
        value = "confirm=all" if found.field == "confirm" else "outcome=ask"
        remedy = f"Run: computer-linker scope edit {found.scope} --policy {value}, unless you mean it"
        yield _finding("warning", "unasked", str(found), remedy, found.scope)


def _same_folder(earlier: Scope, later: Scope) -> Finding:
    alike = same_rights(earlier, later)
    return _finding(
        "warning",
        "duplicate_scope" if alike else "same_folder",
        f"Scopes {earlier.id} and {later.id} are the same folder with {'the same' if alike else 'different'} rights.",
        "Run: computer-linker doctor --fix"
        if alike
        else f"Run: computer-linker scope remove {later.id}, unless you mean it",
        later.id,
        fixable=alike,
    )


def same_rights(one: Scope, other: Scope) -> bool:
    """True when two scopes allow exactly the same on exactly the same folders."""
    return (
        one.type == other.type == "folder"
        and real_roots(one) == real_roots(other)
        and set(one.capabilities) == set(other.capabilities)
        and one.policy == other.policy
    )
