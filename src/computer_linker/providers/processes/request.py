"""Builds a command request from an operation's context."""

from collections.abc import Mapping
from typing import Any, Protocol

from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.providers.processes.prepare import CommandRequest, ViewUse


class CallContext(Protocol):
    """The part of a running operation's context that names the scope, the caller and the paths."""

    scope: Scope
    principal: Principal

    def path(self, target: str, *, for_writing: bool = False) -> RootedPath: ...


def request_of(
    ctx: Any,
    target: str,
    command: str | list[str],
    env: Mapping[str, str],
    *,
    pty: bool = False,
    view: ViewUse | None = None,
) -> CommandRequest:
    """The request: the folder it starts in, and every root of the scope."""
    call: CallContext = ctx
    several = len(call.scope.roots) > 1
    roots = tuple(call.path(f"@{index}" if several else ".") for index in range(len(call.scope.roots)))
    return CommandRequest(call.scope, call.principal, roots, call.path(target or "."), command, env, pty, view=view)
