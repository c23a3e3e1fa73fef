"""token.show: the owner's token."""

from computer_linker.auth.owner_token import is_digest
from computer_linker.config.load import load
from computer_linker.errors import NotFound
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation


class OwnerToken(Model):
    owner_token: str


@owner_operation(
    "token.show",
    effect=Effect.OBSERVE,
    text=lambda result: [result.owner_token],
    examples=[Example("Print the token.", {})],
)
async def token_show(ctx: Context) -> OwnerToken:
    """Print the token. It gives the use of every scope over HTTP."""
    kept = load(ctx.services.home).owner_token
    if kept is None:
        raise NotFound("There is no owner token.", hint="computer-linker token rotate makes one")
    if is_digest(kept):
        raise NotFound(
            "Only the token's digest is kept, so it cannot be shown.",
            hint="computer-linker token rotate makes a new one",
        )
    return OwnerToken(owner_token=kept)
