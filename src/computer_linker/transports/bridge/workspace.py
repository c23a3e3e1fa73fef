"""The workspace named by a request, confined beneath WORKSPACE_ROOT by the kernel."""

import os

from computer_linker.computer.facets.files import Files
from computer_linker.config.schema import Config
from computer_linker.errors import LinkError
from computer_linker.model.scope import Scope
from computer_linker.policy.paths import rooted
from computer_linker.providers.evidence.folder import hold
from computer_linker.transports.bridge.faults import BridgeFault


def workspace_root(config: Config) -> str | None:
    """The root of all workspaces: from the config, else from the service's environment."""
    root = config.bridge.workspace_root or os.environ.get("WORKSPACE_ROOT")
    return root if root and root.startswith("/") else None


def open_workspace(config: Config, files: Files, given: str) -> int:
    """Open the folder named by a request and return its descriptor; blocking.

    The text of the path only selects a name beneath the root. Whether that name stays beneath it is decided by
    the kernel while it opens it, so neither `..` nor a link leads out.
    """
    root = workspace_root(config)
    if root is None:
        raise BridgeFault(
            "DESKTOP_HOST_NOT_READY",
            "No workspace root is set. Set bridge.workspaceRoot in the config, or WORKSPACE_ROOT.",
        )
    name = _beneath(root, given)
    if name is None:
        raise _forbidden("workspacePath is not beneath WORKSPACE_ROOT.")
    try:
        path = rooted(Scope(id="bridge", type="folder", roots=[root]), name, config=config, for_writing=True)
        return hold(lambda: files.open_folder(path))
    except LinkError as error:
        raise _forbidden(error.message) from error
    except OSError as error:
        raise _forbidden(f"The workspace cannot be opened ({error.strerror}).") from error


def _beneath(root: str, given: str) -> str | None:
    """The name beneath the root that an absolute path refers to; None when it is outside."""
    if "\0" in given or ".." in given.split("/"):
        return None
    for start in (root, os.path.realpath(root)):
        start = start.rstrip("/")
        if given.rstrip("/") == start:
            return ""
        if given.startswith(start + "/"):
            return given[len(start) + 1 :]
    return None


def _forbidden(message: str) -> BridgeFault:
    return BridgeFault("DESKTOP_WORKSPACE_FORBIDDEN", message)
