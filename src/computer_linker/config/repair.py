"""Repairs with one correct result. Nothing is guessed and no right is added."""

import stat
from pathlib import Path
from typing import Any

from computer_linker.config.defaults import BOOTSTRAP_SCOPE, EXECUTES, with_execution
from computer_linker.config.diagnose import same_rights
from computer_linker.config.load import CONFIG_NAME, parse
from computer_linker.config.private import FILE_MODE, FOLDER_MODE, READABLE_BY_OTHERS, WRITABLE_BY_OTHERS
from computer_linker.config.roots import is_deleted
from computer_linker.config.store import last_good
from computer_linker.errors import ConfigInvalid
from computer_linker.system import os


def tighten(home: Path, *, dry_run: bool = False) -> list[str]:
    """Make the state folder and config.json private; one sentence each. With `dry_run` nothing is changed.

    Raises ConfigInvalid when others could have written a file that differs from the last valid config: its owner reads it first.
    """
    done: list[str] = []
    for path, mode in ((home, FOLDER_MODE), (home / CONFIG_NAME, FILE_MODE)):
        found = os.stat(path).st_mode
        if found & WRITABLE_BY_OTHERS:
            _check_unchanged(home, path, mode)
        if found & READABLE_BY_OTHERS:
            if not dry_run:
                path.chmod(mode)
            done.append(f"Made {path.name} private (mode {mode:04o}).")
    return done


def _check_unchanged(home: Path, path: Path, mode: int) -> None:
    """Only the owner's own file can have stayed as it was in a folder that others can write."""
    config = home / CONFIG_NAME
    found = os.lstat(config)
    is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1
    if not is_own or (path == config and last_good(home) != config.read_bytes()):
        raise ConfigInvalid(
            f"other users can write {path}, and config.json is not the one that was last in use",
            f"read it, then run: chmod {mode:o} {path}",
        )


def repaired(document: dict[str, Any]) -> list[str]:
    """Repair the document in place and return what was done."""
    return [
        *_without_bootstrap(document),
        *_without_missing_roots(document),
        *_without_duplicates(document),
        *_with_policies(document),
    ]


def _without_missing_roots(document: dict[str, Any]) -> list[str]:
    done: list[str] = []
    kept: list[dict[str, Any]] = []
    for scope in document.get("scopes", []):
        roots = scope.get("roots", [])
        there = [root for root in roots if not is_deleted(root)]
        done += [
            f"Took {root}, which no longer exists, out of scope {scope['id']}." for root in roots if root not in there
        ]
        if there or not roots:
            kept.append({**scope, "roots": there} if roots else scope)
        else:
            done.append(f"Removed scope {scope['id']}, which has no folder left.")
    if done:
        document["scopes"] = kept
    return done


def _without_bootstrap(document: dict[str, Any]) -> list[str]:
    scopes = document.get("scopes", [])
    kept = [scope for scope in scopes if scope["id"] != BOOTSTRAP_SCOPE]
    if not kept or len(kept) == len(scopes):
        return []
    document["scopes"] = kept
    return [f"Removed the first-run scope `{BOOTSTRAP_SCOPE}`."]


def _without_duplicates(document: dict[str, Any]) -> list[str]:
    scopes = parse(document).scopes
    doubled = {
        later.id: earlier.id
        for index, later in enumerate(scopes)
        for earlier in reversed(scopes[:index])
        if same_rights(earlier, later)
    }
    if doubled:
        document["scopes"] = [scope for scope in document["scopes"] if scope["id"] not in doubled]
    return [f"Removed scope {later}, the same as {earlier}." for later, earlier in doubled.items()]


def _with_policies(document: dict[str, Any]) -> list[str]:
    done: list[str] = []
    scopes = []
    for scope in document.get("scopes", []):
        policy = scope.get("policy", {})
        if EXECUTES & set(scope.get("capabilities", [])) and policy.get("allowedCommands") is None:
            scope = {**scope, "policy": with_execution(policy, codex="codex:run" in scope["capabilities"])}
            done.append(f"Gave scope {scope['id']} the default list of allowed commands.")
        scopes.append(scope)
    document["scopes"] = scopes
    return done
