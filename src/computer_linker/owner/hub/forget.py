"""hub.forget: trust a machine no more."""

from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, owner_operation
from computer_linker.service.fleet import FleetManager


class ForgetInput(Model):
    name: Annotated[str, Field(description="The machine's name or id."), Positional()]


class Forgotten(Model):
    forgotten: str


@owner_operation(
    "hub.forget",
    did="removed the machine {name}",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"{result.forgotten} is no longer trusted."],
    examples=[Example("Forget a machine.", {"input": {"name": "laptop"}}, runs=False)],
)
async def hub_forget(ctx: Context, input: ForgetInput) -> Forgotten:
    """Trust a machine no more. Its history stays."""
    ctx.note(name=input.name[:64])
    fleet = ctx.use(FleetManager)
    known = await fleet.forget(input.name)
    ctx.note(key_sha256=known.fingerprint, name=known.name, machine=known.machine_id)
    ctx.effect = "partial" if fleet.is_trusted(known.fingerprint) else "confirmed"
    return Forgotten(forgotten=known.name)
