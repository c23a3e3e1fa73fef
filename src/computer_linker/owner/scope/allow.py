"""scope.allow: one more command that clients may run in a scope."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.config.defaults import EXECUTES, execution_policy
from computer_linker.model.capability import Capability
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    Model,
    Note,
    Positional,
    ScopeId,
    Shown,
    owner_operation,
)
from computer_linker.service.changing_config import change_config
from computer_linker.service.scopes import known_scope, scope_in


class CommandInput(Model):
    scope: Annotated[str, Field(description="The scope's id."), Positional(), ScopeId()]
    command: Annotated[
        str,
        Field(
            description='A program and its arguments, such as "cargo test *"; a last * is any arguments.', min_length=1
        ),
        Positional(),
    ]


class Commands(Model):
    scope: str
    allowed: Annotated[list[str] | None, Field(description="Null: every command.")]
    denied: list[str]
    changed: bool


def commands_of(document: dict[str, Any], scope_id: str, *, changed: bool) -> Commands:
    """The scope's command rules as the document has them."""
    policy = scope_in(document, scope_id).get("policy", {})
    allowed = policy.get("allowedCommands")
    return Commands(
        scope=scope_id,
        allowed=None if allowed is None else [pattern_of(rule) for rule in allowed],
        denied=[pattern_of(rule) for rule in policy.get("deniedCommands", [])],
        changed=changed,
    )


def pattern_of(rule: str | dict[str, Any]) -> str:
    """The pattern of a rule, which may carry examples."""
    return rule if isinstance(rule, str) else str(rule["pattern"])


def without(rules: list[Any], pattern: str) -> list[Any]:
    """The rules but those of exactly this pattern."""
    return [rule for rule in rules if pattern_of(rule) != pattern]


def text_of(result: Commands) -> Iterator[Shown]:
    yield Note(f"Changed scope {result.scope}." if result.changed else f"Scope {result.scope} has that rule already.")
    yield f"allowed: {', '.join(result.allowed) if result.allowed is not None else 'every command'}"
    yield f"denied: {', '.join(result.denied) or 'none'}"


@owner_operation(
    "scope.allow",
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
    if not EXECUTES & set(capabilities):
        policy = {**execution_policy(), **policy, "allowedCommands": policy.get("allowedCommands") or []}
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
