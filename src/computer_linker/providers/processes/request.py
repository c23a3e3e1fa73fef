"""A command request as operations make it from their context."""

from collections.abc import Mapping
from typing import Any, Protocol

from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.providers.processes.prepare import CommandRequest


class Asking(Protocol):
    """The part of a running operation's context that names the scope, the caller and the paths."""

    scope: Scope
    principal: Principal

    def path(self, target: str, *, for_writing: bool = False) -> RootedPath: ...


def request_of(
    ctx: Any, target: str, command: str | list[str], env: Mapping[str, str], *, pty: bool = False
) -> CommandRequest:
    """The request: the folder it starts in, and every root of the scope."""
    asking: Asking = ctx
    several = len(asking.scope.roots) > 1
    roots = tuple(asking.path(f"@{index}" if several else ".") for index in range(len(asking.scope.roots)))
    return CommandRequest(asking.scope, asking.principal, roots, asking.path(target or "."), command, env, pty)
