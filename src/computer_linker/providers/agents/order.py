"""A requested turn, and the mode that the scope allows for it."""

import os
from dataclasses import dataclass
from typing import Protocol

from computer_linker.errors import PermissionDenied
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import folder_access
from computer_linker.providers.agents.program import Mode
from computer_linker.providers.agents.sessions import DiffSummary, Session, Workflow
from computer_linker.providers.agents.workflows import READ_ONLY
from computer_linker.providers.processes.held_view import ViewUse


class TurnView(ViewUse, Protocol):
    """The view that a turn works in."""

    @property
    def id(self) -> str | None:
        """Its id once it is held; None for a turn that only reads, which needs none."""
        ...

    async def difference(self) -> tuple[DiffSummary, str] | None:
        """What the view would change, and the diff; None when it could not be compared."""
        ...


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
    view: TurnView | None = None
    """Takes the changes of the folder instead of it."""

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
