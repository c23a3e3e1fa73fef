"""Repairs with one correct result. Nothing is guessed and no right is added."""

import os
from pathlib import Path
from typing import Any

from computer_linker.config.defaults import BOOTSTRAP_SCOPE, EXECUTES, execution_policy
from computer_linker.config.diagnose import same_rights
from computer_linker.config.load import CONFIG_NAME, Check, load, parse, read_document, with_identity
from computer_linker.config.private import FILE_MODE, FOLDER_MODE, READABLE_BY_OTHERS
from computer_linker.config.store import update


def repair(home: Path, check: Check | None = None) -> list[str]:
    """Apply every repair; one sentence each. A file that does not load raises ConfigInvalid and is not changed."""
    load(home, check)
    done = _tighten(home)
    found: list[str] = []

    def edit(document: dict[str, Any]) -> None:
        found.extend(repaired(document))

    planned = repaired(with_identity(dict(read_document(home).value), home))
    if planned:
        update(home, edit, check)
    return [*done, *found]


def repaired(document: dict[str, Any]) -> list[str]:
    """Repair the document in place and return what was done."""
    return [*_without_bootstrap(document), *_without_duplicates(document), *_with_policies(document)]


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
            # The scope's own settings stay: the defaults only fill what is missing.
            said = {name: value for name, value in policy.items() if value is not None}
            scope = {**scope, "policy": {**execution_policy(), **said}}
            done.append(f"Gave scope {scope['id']} the default list of allowed commands.")
        scopes.append(scope)
    document["scopes"] = scopes
    return done


def _tighten(home: Path) -> list[str]:
    done: list[str] = []
    if not hasattr(os, "geteuid"):
        return done
    for path, mode in ((home, FOLDER_MODE), (home / CONFIG_NAME, FILE_MODE)):
        if path.stat().st_mode & READABLE_BY_OTHERS:
            path.chmod(mode)
            done.append(f"Made {path.name} private (mode {mode:04o}).")
    return done
