"""scope.allow: one more command that clients may run in a scope."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.config.defaults import EXECUTES, pattern_of, with_execution
from computer_linker.model.capability import Capability
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    Model,
    Note,
    Positional,
    ScopeArgument,
    Shown,
    owner_operation,
)
from computer_linker.service.changing_config import change_config
from computer_linker.service.scopes import known_scope, scope_in


class CommandInput(Model):
    scope: ScopeArgument
    command: Annotated[
        str,
        Field(
            description='A program and its arguments, such as "cargo test *"; a last * is any arguments.', min_length=1
        ),
        Positional(),
    ]


class Commands(Model):
    scope: str
    may_run: Annotated[bool, Field(description="False: the scope has no right to run commands.")]
    allowed: Annotated[list[str] | None, Field(description="Null: every command, inside the sandbox.")]
    denied: list[str]
    changed: bool


def commands_of(document: dict[str, Any], scope_id: str, *, changed: bool) -> Commands:
    """The scope's command rules as the document has them."""
    scope = scope_in(document, scope_id)
    policy = scope.get("policy", {})
    allowed = policy.get("allowedCommands")
    return Commands(
        scope=scope_id,
        may_run=_may_run(scope),
        allowed=None if _allows_every(scope) else [pattern_of(rule) for rule in allowed or []],
        denied=[pattern_of(rule) for rule in policy.get("deniedCommands", [])],
        changed=changed,
    )


def without(rules: list[Any], pattern: str) -> list[Any]:
    """The rules but those of exactly this pattern."""
    return [rule for rule in rules if pattern_of(rule) != pattern]


def _may_run(scope: dict[str, Any]) -> bool:
    return bool(EXECUTES & set(scope.get("capabilities", [])))


def _allows_every(scope: dict[str, Any]) -> bool:
    """True where no list limits what runs in the sandbox. A scope without any policy runs only programs that read."""
    return _may_run(scope) and "policy" in scope and scope["policy"].get("allowedCommands") is None


def text_of(result: Commands) -> Iterator[Shown]:
    yield Note(f"Changed scope {result.scope}." if result.changed else f"Scope {result.scope} has that rule already.")
    if not result.may_run:
        yield f"allowed: none, scope {result.scope} does not run commands"
    elif result.allowed is None:
        yield "allowed: every command, inside the sandbox"
    else:
        yield f"allowed: {', '.join(result.allowed) or 'programs that only read'}"
    yield f"denied: {', '.join(result.denied) or 'none'}"


@owner_operation(
    "scope.allow",
    did="allowed commands in the scope {scope}[: {command}]",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=text_of,
    examples=[Example("Let clients run the tests.", {"input": {"scope": "app", "command": "cargo test *"}})],
)
async def scope_allow(ctx: Context, input: CommandInput) -> Commands:
    """Let clients run one more command in a scope; the rest of its rules stay.

    A scope that runs no commands yet gets the right to run this one alone, in the sandbox and without network.
    """
    known_scope(ctx.services.config, input.scope)
    made: list[Commands] = []

    def edit(document: dict[str, Any]) -> None:
        changed = _allow(scope_in(document, input.scope), input.command)
        made.append(commands_of(document, input.scope, changed=changed))

    await change_config(ctx, edit)
    ctx.note(scope=input.scope, command=input.command)
    return made[0]


def _allow(scope: dict[str, Any], command: str) -> bool:
    """Add the rule in place; False when the scope allows it by the same rule, or allows every command."""
    capabilities, policy = list(scope.get("capabilities", [])), dict(scope.get("policy", {}))
    before = (capabilities[:], dict(policy))
    if not _may_run(scope) or "policy" not in scope:
        policy = {**with_execution(policy), "allowedCommands": policy.get("allowedCommands") or []}
    if Capability.COMMAND_RUN not in capabilities:
        capabilities.append(Capability.COMMAND_RUN.value)
    allowed = policy.get("allowedCommands")
    if allowed is not None and command not in map(pattern_of, allowed):
        policy["allowedCommands"] = [*allowed, command]
    if command in map(pattern_of, policy.get("deniedCommands", [])):
        policy["deniedCommands"] = without(policy["deniedCommands"], command)
    if (capabilities, policy) == before:
        return False
    scope.update(capabilities=capabilities, policy=policy)
    return True
