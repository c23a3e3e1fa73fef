"""command.reach: ask the owner to let the programs of this scope reach one more host for a while."""

from typing import Annotated

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.model.network import ASK, split_host
from computer_linker.providers.network.asking import MINUTES, Asking
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class ReachInput(Model):
    host: Annotated[
        str, Field(min_length=1, max_length=300, description="HOST or HOST:PORT; without a port, 80 and 443.")
    ]
    minutes: Annotated[int, Field(ge=1, le=1440, description="How long it stays open.")] = MINUTES


class Reached(Model):
    host: str
    minutes: int


async def _show(ctx: Context, input: ReachInput) -> Preview:
    host, port = _place(ctx, input.host)
    return Preview(
        (f"lets the programs of scope {ctx.scope.id} reach {host}{_ports(port)} for {input.minutes} minutes",)
    )


@operation(
    "command.reach",
    did="let programs reach[ {host}]",
    needs={Capability.COMMAND_RUN},
    effect=Effect.CHANGE,
    deadline_s=None,
    asked_by=lambda _policy: True,
    shows=_show,
    examples=[Example("Ask for one host.", {"input": {"host": "packages.example.org"}}, runs=False)],
)
async def command_reach(ctx: Context, input: ReachInput) -> Reached:
    """Let the programs of the scope reach one more host for some minutes. A person is asked, unless a standing yes covers it.

    Off unless the scope's `network` list has `ask`. A connection to a host that is not in such a list calls this by itself,
    and goes on at a yes.
    """
    host, port = _place(ctx, input.host)
    ctx.use(Asking).grant(ctx.scope.id, host, port, input.minutes)
    ctx.note(host=host, port=port or None, minutes=input.minutes)
    ctx.effect = "confirmed"
    return Reached(host=f"{host}:{port}" if port else host, minutes=input.minutes)


def _place(ctx: Context, text: str) -> tuple[str, int]:
    network = ctx.scope.policy.network
    if isinstance(network, bool) or ASK not in network:
        raise PermissionDenied(
            "This scope asks for no further hosts. The owner can let it ask: "
            f"computer-linker scope allow-host {ctx.scope.id} --ask",
            rule="network",
        )
    try:
        return split_host(text, 0)
    except ValueError as error:
        raise InvalidRequest(f"{error}.", field="host") from None


def _ports(port: int) -> str:
    return f":{port}" if port else " on ports 80 and 443"
