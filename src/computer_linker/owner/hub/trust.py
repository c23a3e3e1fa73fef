"""hub.trust: let in a machine that asked to join."""

from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, owner_operation
from computer_linker.service.fleet import FleetManager


class TrustInput(Model):
    key: Annotated[str, Field(description="The machine's key, or its first digits."), Positional()]


class Trusted(Model):
    trusted: str


@owner_operation(
    "hub.trust",
    did="trusted the machine {name}",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"{result.trusted} is trusted."],
    examples=[Example("Trust by its key.", {"input": {"key": "0123456789abcdef0123"}}, runs=False)],
)
async def hub_trust(ctx: Context, input: TrustInput) -> Trusted:
    """Trust a machine that asked to join. Compare the key with what it shows itself."""
    ctx.note(key_sha256=input.key.replace(":", "").lower()[:64])
    fleet = ctx.use(FleetManager)
    known = fleet.trust(input.key).known
    ctx.note(key_sha256=known.fingerprint, name=known.name, machine=known.machine_id)
    ctx.effect = "confirmed" if fleet.is_trusted(known.fingerprint) else "partial"
    return Trusted(trusted=known.name)
