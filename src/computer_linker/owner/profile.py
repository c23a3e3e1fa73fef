"""profile: this computer's connection profile, the token left out."""

from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Table, owner_operation
from computer_linker.service.client_setup import ConnectionProfile, connection_profile
from computer_linker.service.lifetime import Lifetime


class ProfileInput(Model):
    show_token: Annotated[bool, Field(description="Put the real token in.")] = False


def _plain(value: object) -> str:
    """Format a value for a person."""
    match value:
        case bool():
            return "yes" if value else "no"
        case dict():
            return " ".join(f"{name}={each}" for name, each in value.items()) or "none"
        case None:
            return "none"
        case _:
            return str(value)


@owner_operation(
    "profile",
    effect=Effect.OBSERVE,
    text=lambda result: [Table([(name, _plain(value)) for name, value in result.to_wire().items()])],
    examples=[Example("Which computer is this?", {})],
)
async def profile(ctx: Context, input: ProfileInput = ProfileInput()) -> ConnectionProfile:
    """Show which computer this is and how it is reached."""
    running = ctx.services.peek(Lifetime)
    url = running.local_url if running is not None else None
    return connection_profile(
        ctx.services.config, ctx.services.home, url, running=running is not None, show_token=input.show_token
    )
