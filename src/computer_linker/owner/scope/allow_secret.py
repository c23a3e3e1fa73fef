"""scope.allow_secret: one secret that programs of a scope may use."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.errors import Conflict
from computer_linker.model.network import WORDS, parse_entry, shown_network
from computer_linker.providers.network.reach import entry_for
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
from computer_linker.vault.vault import Vault

Policy = dict[str, Any]


class SecretInput(Model):
    scope: ScopeArgument
    secret: Annotated[str, Field(description="The secret's name.", max_length=64), Positional()]


class Secrets(Model):
    scope: str
    secrets: list[str]
    network: Annotated[bool | list[str], Field(description="The hosts that programs reach.")]
    changed: bool


def text_of(result: Secrets) -> Iterator[Shown]:
    yield Note(f"Changed scope {result.scope}." if result.changed else f"Nothing to change in scope {result.scope}.")
    yield f"secrets: {', '.join(result.secrets) or 'none'}"
    yield f"network: {shown_network(result.network)}"


async def change_secrets(ctx: Context, input: SecretInput, change: Callable[[Policy], Policy]) -> Secrets:
    """Change the secrets of a scope by one name."""
    known_scope(ctx.services.config, input.scope)
    made: list[Secrets] = []

    def edit(document: dict[str, Any]) -> None:
        scope = scope_in(document, input.scope)
        before = scope.get("policy", {})
        after = change(before)
        is_changed = after != before
        made.append(
            Secrets(
                scope=input.scope,
                secrets=after.get("secrets", []),
                network=after.get("network", False),
                changed=is_changed,
            )
        )
        if is_changed:
            scope["policy"] = after

    await change_config(ctx, edit)
    ctx.note(scope=input.scope, secret=input.secret)
    return made[0]


@owner_operation(
    "scope.allow_secret",
    did="let the scope {scope} use the secret {secret}",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=text_of,
    examples=[Example("Let programs use a token.", {"input": {"scope": "app", "secret": "api-token"}}, runs=False)],
)
async def scope_allow_secret(ctx: Context, input: SecretInput) -> Secrets:
    """Let the commands of a scope use a secret at its host, and reach that host. Running commands are not changed."""
    stored = ctx.use(Vault).known(input.secret)

    def allowed(policy: Policy) -> Policy:
        network = policy.get("network", False)
        names = list(dict.fromkeys([*policy.get("secrets", []), input.secret]))
        if not stored.host or stored.scheme == "http":
            return {**policy, "secrets": names}
        if network is True:
            raise Conflict(
                "Programs of this scope reach every host by themselves; a secret is used only where the gate connects for them.",
                hint=f"computer-linker scope edit {input.scope} --policy network=false, then allow-host what they need",
            )
        entries = [parse_entry(text) for text in network or [] if text not in WORDS]
        is_reached = any(entry.covers(stored.host, stored.port) for entry in entries)
        hosts = list(network or []) if is_reached else [*(network or []), entry_for(stored.host, stored.port)]
        return {**policy, "secrets": names, "network": hosts}

    return await change_secrets(ctx, input, allowed)
