"""secret.remove: forget a secret."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.config.schema import Config
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Positional, Shown, owner_operation
from computer_linker.service.changing_config import change_config
from computer_linker.service.scopes import scope_in
from computer_linker.vault.vault import Vault


class RemoveInput(Model):
    name: Annotated[str, Field(description="The secret's name."), Positional()]


class Removed(Model):
    name: str
    scopes: Annotated[list[str], Field(description="The scopes that could use it, and no longer name it.")] = []


def _text(result: Removed) -> Iterator[Shown]:
    yield f"Removed {result.name}. Requests of running programs carry its placeholder from now on."
    if result.scopes:
        yield Note(f"Taken from the scopes {', '.join(result.scopes)}; their hosts stay allowed (scope deny-host).")


@owner_operation(
    "secret.remove",
    did="removed the secret {name}",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=_text,
    examples=[Example("Forget it.", {"input": {"name": "api-token"}}, runs=False)],
)
async def secret_remove(ctx: Context, input: RemoveInput) -> Removed:
    """Remove a secret, also from the scopes that may use it. It is not kept for undo, and no request carries it any more."""
    scopes = granted(ctx.services.config, input.name)
    ctx.use(Vault).remove(input.name)

    def edit(document: dict[str, Any]) -> None:
        for scope in scopes:
            policy = scope_in(document, scope)["policy"]
            policy["secrets"] = [name for name in policy["secrets"] if name != input.name]

    if scopes:
        # A later secret of the same name must not be theirs unasked.
        await change_config(ctx, edit)
    ctx.effect = "confirmed"
    return Removed(name=input.name, scopes=scopes)


def granted(config: Config, name: str) -> list[str]:
    """The scopes that may use a secret of this name."""
    return [scope.id for scope in config.scopes if name in scope.policy.secrets]
