"""scope.deny: a command that clients may not run in a scope."""

from typing import Any

from computer_linker.config.defaults import pattern_of, policy_of
from computer_linker.owner.scope.allow import CommandInput, Commands, commands_of, text_of, without
from computer_linker.registry.owner import Context, Effect, Example, owner_operation
from computer_linker.service.changing_config import change_config
from computer_linker.service.scopes import known_scope, scope_in


@owner_operation(
    "scope.deny",
    did="denied commands in the scope {scope}[: {command}]",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=text_of,
    examples=[Example("No publishing.", {"input": {"scope": "app", "command": "cargo publish *"}})],
)
async def scope_deny(ctx: Context, input: CommandInput) -> Commands:
    """Refuse a command in a scope, whatever else its rules allow."""
    known_scope(ctx.services.config, input.scope)
    made: list[Commands] = []

    def edit(document: dict[str, Any]) -> None:
        scope = scope_in(document, input.scope)
        policy = policy_of(scope)
        denied = policy.get("deniedCommands", [])
        changed = input.command not in map(pattern_of, denied)
        if changed:
            policy["deniedCommands"] = [*denied, input.command]
            if policy.get("allowedCommands") is not None:
                policy["allowedCommands"] = without(policy["allowedCommands"], input.command)
            scope["policy"] = policy
        made.append(commands_of(document, input.scope, changed=changed))

    await change_config(ctx, edit)
    ctx.note(scope=input.scope, command=input.command)
    return made[0]
