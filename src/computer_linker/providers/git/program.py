"""The git program: where it is, and the environment and settings under which it runs."""

import subprocess
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from computer_linker.errors import ProviderUnavailable
from computer_linker.policy.writers import find_program
from computer_linker.system import os

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "SSH_ASKPASS": "/bin/false",
    "GIT_EDITOR": "/bin/false",
    "GIT_SEQUENCE_EDITOR": "/bin/false",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "/bin/false",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ADVICE": "0",
}

_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("core.preloadIndex", "true"),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "all"),
    ("interactive.diffFilter", ""),
    ("sequence.editor", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("uploadpack.packObjectsHook", ""),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("color.ui", "never"),
    ("core.quotePath", "false"),
    ("mailmap.file", "/dev/null"),
    ("trace2.normalTarget", ""),
    ("worktree.useRelativePaths", "false"),
)


@lru_cache(maxsize=1)
def program() -> str | None:
    """The git of a trusted folder; never one found through PATH."""
    return find_program("git")


def needed_program() -> str:
    found = program()
    if found is None:
        raise ProviderUnavailable("Git is not installed. Install the package `git`, then retry.", program="git")
    return found


@lru_cache(maxsize=1)
def program_places() -> tuple[str, ...]:
    """What git must be able to execute: itself, its helpers and the loader, but no shell."""
    git = needed_program()
    helpers = subprocess.run(
        [git, "--exec-path"], env=environment(), capture_output=True, timeout=10, check=True
    ).stdout.decode("utf-8", "replace")
    loaders = [str(path) for folder in ("/lib64", "/lib") for path in Path(folder).glob("ld-*.so*")]
    return (os.path.realpath(git), helpers.strip(), *loaders)


def environment(extra: Mapping[str, str] | None = None, drivers: Iterable[str] = ()) -> dict[str, str]:
    """A complete environment: nothing inherited, and every configurable external program disabled.

    `drivers` are the names of content filters the repository defines; git has no setting that disables all at once.
    """
    settings = list(_SETTINGS)
    for name in drivers:
        settings += [(f"filter.{name}.{key}", "") for key in ("clean", "smudge", "process")]
        settings.append((f"filter.{name}.required", "false"))
    made = dict(_ENVIRONMENT)
    for number, (key, value) in enumerate(settings):
        made[f"GIT_CONFIG_KEY_{number}"] = key
        made[f"GIT_CONFIG_VALUE_{number}"] = value
    made["GIT_CONFIG_COUNT"] = str(len(settings))
    made.update(extra or {})
    return made
