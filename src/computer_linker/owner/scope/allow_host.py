"""scope.allow_host: one more host that programs of a scope reach."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.network import ASK, WORDS, parse_entry, shown_network
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

Network = bool | list[str]


class HostInput(Model):
    scope: ScopeArgument
    host: Annotated[
        str | None,
        Field(
            description="HOST[:PORT], *.DOMAIN[:PORT], HOST:PORT=ADDRESS, or apt, cargo, go, npm, pip for the hosts of your "
            "settings. Without a port: 80 and 443.",
            min_length=1,
            max_length=300,
        ),
        Positional(),
    ] = None
    ask: Annotated[bool, Field(description="Every host that is not in the list: a connection there is put to you.")] = (
        False
    )

    @property
    def entry(self) -> str:
        """The entry of the list. Raises InvalidRequest unless exactly one is named."""
        if (self.host is None) != self.ask:
            raise InvalidRequest("Name a host, or --ask.", field="host")
        return self.host or ASK


class Hosts(Model):
    scope: str
    network: Annotated[bool | list[str], Field(description="True: every host. False: none.")]
    changed: bool


def text_of(result: Hosts) -> Iterator[Shown]:
    yield Note(f"Changed scope {result.scope}." if result.changed else f"Nothing to change in scope {result.scope}.")
    yield f"network: {shown_network(result.network)}"


async def change_hosts(ctx: Context, input: HostInput, change: Callable[[Network, str], Network]) -> Hosts:
    """Change the network of a scope by one entry."""
    known_scope(ctx.services.config, input.scope)
    entry = input.entry
    if entry not in WORDS:
        try:
            parse_entry(entry)
        except ValueError as error:
            raise InvalidRequest(f"{error}.", field="host") from error
    made: list[Hosts] = []

    def edit(document: dict[str, Any]) -> None:
        scope = scope_in(document, input.scope)
        before = scope.get("policy", {}).get("network", False)
        after = change(before, entry)
        made.append(Hosts(scope=input.scope, network=after, changed=after != before))
        if after != before:
            scope["policy"] = {**scope.get("policy", {}), "network": after}

    await change_config(ctx, edit)
    others = "others, when you say yes" if entry == ASK else None
    ctx.note(scope=input.scope, host=entry if others is None else None, others=others)
    return made[0]


@owner_operation(
    "scope.allow_host",
    did="allowed a host in the scope {scope}[: {host}][: {others}]",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=text_of,
    examples=[Example("Let programs reach one host.", {"input": {"scope": "app", "host": "packages.example.org"}})],
)
async def scope_allow_host(ctx: Context, input: HostInput) -> Hosts:
    """Let the commands and browsers of a scope reach one more host. A running command reaches a new port or address through its
    proxy alone, and nothing where it was started without a network."""
    return await change_hosts(ctx, input, _added)


def _added(network: Network, host: str) -> Network:
    if network is True:
        return True
    return list(dict.fromkeys([*(network or []), host]))
