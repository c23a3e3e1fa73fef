"""Judges the shell line of a request, with the programs of its scope."""

from typing import Protocol

from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope, ScopePolicy
from computer_linker.policy.command_line import MAX_TEXT, ShellNeeded, to_argv
from computer_linker.policy.commands import Program, is_allowed, judge_denied
from computer_linker.policy.engine import FolderAccess
from computer_linker.policy.lines import LineRules, judge_line
from computer_linker.providers.processes import environment
from computer_linker.providers.processes.programs import Programs
from computer_linker.system import os


class ShellRequest(Protocol):
    """The part of a request that a line is judged by."""

    @property
    def scope(self) -> Scope: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def command(self) -> str | list[str]: ...
    @property
    def access(self) -> FolderAccess: ...


def argv_of(request: ShellRequest) -> tuple[list[str], str | None]:
    """The argv of a plain command, or the line that a shell gets."""
    try:
        return to_argv(request.command), None
    except ShellNeeded as needed:
        text = request.command
        if not isinstance(text, str):
            raise
        if not request.scope.policy.allow_shell:
            raise InvalidRequest(
                f"{needed.message} A whole shell line runs only where the owner gave the scope `allowShell`.",
                rule="allowShell",
            ) from None
        if len(text) > MAX_TEXT or "\0" in text:
            raise InvalidRequest(f"A shell command has at most {MAX_TEXT} characters and no NUL.") from None
        return [], text


def shell_of(programs: Programs) -> str:
    """The shell that runs a line: bash, whose grammar lines are read by, else the system's own."""
    return "bash" if programs.locate("bash") is not None else "sh"


def judge_request(
    request: ShellRequest, argv: list[str], shell: Program, programs: Programs, where: str
) -> list[Program]:
    """Judge a line by the programs in it, unless a rule of the scope allows the shell itself with any line."""
    policy = request.scope.policy
    judge_denied(policy, tuple(argv), shell, programs.locate)
    is_hidden = request.access == "hidden"

    def resolve(name: str, folder: str) -> Program | None:
        if is_hidden and "/" in name and not name.startswith("/"):
            return None
        try:
            found = programs.resolve(name, os.path.join(where, folder))
        except (NotFound, InvalidRequest):
            return None
        return None if is_hidden and programs.is_in_scope(found) else found

    allowed = policy.allowed_commands
    if allowed is not None and any(_allows_shell(policy, name, argv, programs) for name in ("sh", "bash")):
        policy = policy.model_copy(update={"allowed_commands": None})
    scope = request.scope.model_copy(update={"policy": policy})
    rules = LineRules(scope, request.principal, programs.locate, resolve, environment.TAKES_OVER)
    return judge_line(rules, argv[-1])


def _allows_shell(policy: ScopePolicy, name: str, argv: list[str], programs: Programs) -> bool:
    path = programs.locate(name)
    if path is None:
        return False
    shell = Program(path, os.path.realpath(path), is_writable_by_scope=False)
    return is_allowed(policy, (name, *argv[1:]), shell, programs.locate, boundary_holds=False)
