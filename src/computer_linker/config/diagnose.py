"""Findings about a config that loads: what is wrong or unwise, what would help, and whether `doctor --fix` can do it.

An `error` keeps a scope from working or exposes more than a person would want; the service is then not ready.
A `warning` is worth a look. What is refused outright (`/` as a root, a root in the state folder) is in runtime.py.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from computer_linker.config.defaults import BOOTSTRAP_SCOPE, EXECUTES
from computer_linker.config.load import CONFIG_NAME
from computer_linker.config.private import READABLE_BY_OTHERS
from computer_linker.config.runtime import state_inside
from computer_linker.config.schema import Config
from computer_linker.model.capability import Capability
from computer_linker.model.scope import Scope

Severity = Literal["error", "warning", "info"]
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem found, with its remedy."""

    severity: Severity
    code: str
    message: str
    remedy: str
    scope: str | None = None
    fixable: bool = False

    def to_wire(self) -> dict[str, Any]:
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
            "scope": self.scope,
            "fixable": self.fixable,
        }


def is_loopback(host: str) -> bool:
    """True for an address that only this machine can reach."""
    return host in _LOOPBACK or host.startswith("127.")


def diagnose(config: Config, home: Path) -> list[Finding]:
    """Every finding, errors first."""
    found = [*_private(home), *_exposure(config), *_scopes(config, home), *_overlaps(config)]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda finding: order[finding.severity])


def _private(home: Path) -> Iterator[Finding]:
    if not hasattr(os, "geteuid"):
        return
    for path, mode in ((home, "700"), (home / CONFIG_NAME, "600")):
        if path.exists() and path.stat().st_mode & READABLE_BY_OTHERS:
            what = "The state folder" if path == home else CONFIG_NAME
            yield Finding(
                "warning",
                "state_readable",
                f"{what} can be read by other users of this computer.",
                f"Run: chmod {mode} {path}",
                fixable=True,
            )


def _exposure(config: Config) -> Iterator[Finding]:
    if config.owner_token is None:
        severity: Severity = "warning" if is_loopback(config.host) else "error"
        yield Finding(
            severity,
            "no_owner_token",
            "HTTP clients need no token: every program on this computer can use the scopes."
            if severity == "warning"
            else f"The service would listen on {config.host} without a token, so it refuses to start.",
            "Run: computer-linker token rotate",
        )
    elif not is_loopback(config.host):
        yield Finding(
            "warning",
            "not_loopback",
            f"The service listens on {config.host}; other machines can reach it with the token.",
            "Run: computer-linker config set host 127.0.0.1, unless you mean it",
        )
    if config.tunnel.provider is not None and config.owner_token is None:
        yield Finding(
            "error",
            "tunnel_without_token",
            f"A {config.tunnel.provider} tunnel is wished for, and without an owner token none is opened.",
            "Run: computer-linker token rotate, or: computer-linker tunnel stop",
        )
    if config.public_base_url is not None and config.public_base_url.startswith("http://"):
        yield Finding(
            "warning",
            "public_url_not_https",
            "publicBaseUrl is not https; tokens would travel in clear.",
            "Use an https address.",
        )


def _scopes(config: Config, home: Path) -> Iterator[Finding]:
    if not config.scopes:
        yield Finding(
            "error",
            "no_scopes",
            "No scope is configured, so clients can do nothing.",
            "Run: computer-linker scope add FOLDER",
        )
    state = Path(os.path.realpath(home))
    for scope in config.scopes:
        for root in scope.roots:
            yield from _root(scope, root, state)
        yield from _execution(scope)
        if scope.id == BOOTSTRAP_SCOPE and len(config.scopes) > 1:
            yield Finding(
                "warning",
                "bootstrap_scope",
                "The first-run scope `current` is still there beside the scopes you chose.",
                "Run: computer-linker doctor --fix",
                scope.id,
                fixable=True,
            )


def _root(scope: Scope, root: str, state: Path) -> Iterator[Finding]:
    if root in scope.refused:
        sentence = scope.refused[root].partition(" If that is meant")[0]
        yield Finding(
            "error",
            "root_changed",
            sentence,
            f"Run: computer-linker scope confirm {scope.id}, if you mean it",
            scope.id,
        )
    try:
        mode = Path(root).stat().st_mode
    except OSError:
        yield Finding(
            "warning",
            "root_missing",
            f"The folder {root} does not exist or cannot be opened.",
            "Make the folder, or run: computer-linker scope edit " + scope.id,
            scope.id,
        )
        return
    if not stat.S_ISDIR(mode):
        yield Finding("error", "root_not_a_folder", f"{root} is not a folder.", "Name a folder.", scope.id)
    elif mode & stat.S_IWOTH:
        yield Finding(
            "warning",
            "root_writable_by_all",
            f"Any user of this computer can change {root}.",
            f"Run: chmod o-w {root}",
            scope.id,
        )
    if state_inside(root, state) is not None:
        yield Finding(
            "warning",
            "root_contains_state",
            f"{root} contains the service's own state folder, which is kept out of the scope.",
            "Choose a narrower folder.",
            scope.id,
        )


def _execution(scope: Scope) -> Iterator[Finding]:
    if not EXECUTES & set(scope.capabilities):
        return
    if scope.policy.allowed_commands is None:
        yield Finding(
            "warning",
            "no_command_policy",
            f"Scope {scope.id} can start programs and has no list of allowed commands.",
            "Run: computer-linker doctor --fix",
            scope.id,
            fixable=True,
        )
    if scope.policy.sandbox == "off":
        yield Finding(
            "warning",
            "sandbox_off",
            f"Programs started in scope {scope.id} are not held inside its folders.",
            'Set the scope\'s policy `sandbox` to "auto" or "required".',
            scope.id,
        )


def _overlaps(config: Config) -> Iterator[Finding]:
    folders = [scope for scope in config.scopes if scope.type == "folder"]
    for index, later in enumerate(folders):
        for earlier in folders[:index]:
            if _real_roots(earlier) == _real_roots(later):
                yield _same_folder(earlier, later)
            elif Capability.FS_WRITE in earlier.granted ^ later.granted and _nested(earlier, later):
                yield Finding(
                    "info",
                    "overlap",
                    f"Scopes {earlier.id} and {later.id} overlap; the narrower read-only one holds for its folder.",
                    "Nothing to do if that is what you mean.",
                    later.id,
                )


def _same_folder(earlier: Scope, later: Scope) -> Finding:
    alike = same_rights(earlier, later)
    return Finding(
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
        and _real_roots(one) == _real_roots(other)
        and set(one.capabilities) == set(other.capabilities)
        and one.policy == other.policy
    )


def _real_roots(scope: Scope) -> list[str]:
    return sorted(os.path.realpath(root) for root in scope.roots)


def _nested(one: Scope, other: Scope) -> bool:
    pairs = [(Path(a), Path(b)) for a in _real_roots(one) for b in _real_roots(other)]
    return any(a.is_relative_to(b) or b.is_relative_to(a) for a, b in pairs)
