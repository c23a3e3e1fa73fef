"""A requested turn, and the mode that the scope allows for it."""

import os
from dataclasses import dataclass

from computer_linker.errors import PermissionDenied
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import folder_access
from computer_linker.providers.agents.program import Mode
from computer_linker.providers.agents.sessions import Session, Workflow
from computer_linker.providers.agents.workflows import READ_ONLY


@dataclass(frozen=True, slots=True)
class Order:
    """One turn to run."""

    operation_id: str
    op: str
    scope: Scope
    principal: Principal
    roots: tuple[RootedPath, ...]
    cwd: RootedPath
    agent: str
    workflow: Workflow
    prompt: str
    mode: Mode
    timeout_s: float
    model: str | None = None
    session: Session | None = None
    """The session to continue."""

    @property
    def cwd_path(self) -> str:
        """The working folder's path, to make the agent's paths relative."""
        return os.path.realpath("/".join((self.cwd.root, *self.cwd.parts)))


def mode_for(scope: Scope, principal: Principal, workflow: Workflow, asked: Mode | None) -> Mode:
    """The widest mode that the scope, the caller's grants and the workflow allow, or the narrower one that was asked for."""
    may_write = folder_access(principal, scope) == "writable"
    if asked == "workspace-write" and not may_write:
        raise PermissionDenied(
            "The scope or this caller lacks fs:write, so an agent runs read-only in it.", rule="sandbox"
        )
    if not may_write or workflow in READ_ONLY or asked == "read-only":
        return "read-only"
    return "workspace-write"
