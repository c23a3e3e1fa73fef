"""Builds a command request from an operation's context."""

from collections.abc import Mapping
from typing import Any, Protocol

from computer_linker.model.capability import Capability
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.providers.processes.held_view import ViewUse
from computer_linker.providers.processes.prepare import CommandRequest


class CallContext(Protocol):
    """The part of a running operation's context that names the scope, the caller and the paths."""

    scope: Scope
    principal: Principal

    def path(self, target: str, *, for_writing: bool = False) -> RootedPath: ...
    def path_from_root(self, target: str) -> RootedPath: ...


def request_of(
    ctx: Any,
    target: str,
    command: str | list[str],
    env: Mapping[str, str],
    *,
    pty: bool = False,
    view: ViewUse | None = None,
    any_of: frozenset[Capability] = frozenset({Capability.COMMAND_RUN}),
) -> CommandRequest:
    """The request: the folder it starts in, and every root of the scope."""
    call: CallContext = ctx
    several = len(call.scope.roots) > 1
    roots = tuple(call.path_from_root(f"@{index}" if several else ".") for index in range(len(call.scope.roots)))
    cwd = call.path(target or ".")
    return CommandRequest(call.scope, call.principal, roots, cwd, command, env, pty, view=view, any_of=any_of)
