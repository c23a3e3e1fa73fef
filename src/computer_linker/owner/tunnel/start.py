"""tunnel.start: make MCP reachable from elsewhere."""

import copy
from typing import Annotated, Any

from pydantic import Field

from computer_linker.config.load import load, parse, read_document
from computer_linker.config.schema import TunnelName
from computer_linker.errors import InvalidRequest
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    LocalPath,
    Model,
    Named,
    Positional,
    owner_operation,
)
from computer_linker.service.changing_config import change_config
from computer_linker.service.tunnels import TunnelManager, TunnelState

_PROGRAM_OF = {
    "cloudflare": "cloudflare",
    "cloudflare-named": "cloudflare",
    "tailscale": "tailscale",
    "openai": "openai",
}
"""The config section with the program of each provider that runs one."""


class StartInput(Model):
    provider: Annotated[
        TunnelName,
        Field(description="cloudflare, cloudflare-named, tailscale, openai or manual."),
        Positional("PROVIDER"),
    ]
    once: Annotated[bool, Field(description="For this run of the service only.")] = False
    hostname: Annotated[str | None, Field(description="cloudflare-named: the hostname that leads here.")] = None
    name: Annotated[
        str | None, Field(description="cloudflare-named: a tunnel made by cloudflared on this computer.")
    ] = None
    token_file: Annotated[
        str | None, Field(description="cloudflare-named: a private file with its token."), LocalPath()
    ] = None
    tunnel_client: Annotated[str | None, Field(description="openai: where tunnel-client is."), LocalPath()] = None
    sha256: Annotated[
        str | None, Field(description="openai: the digest tunnel-client must have."), Named("--sha256")
    ] = None
    tunnel_id: Annotated[str | None, Field(description="openai: the id of the tunnel, tunnel_...")] = None
    api_key_file: Annotated[str | None, Field(description="openai: a private file with the API key."), LocalPath()] = (
        None
    )
    program: Annotated[str | None, Field(description="Where the provider's program is."), LocalPath()] = None
    port: Annotated[int | None, Field(ge=0, le=65535, description="The loopback port it leads to; 0 picks one.")] = None


@owner_operation(
    "tunnel.start",
    effect=Effect.CHANGE,
    where="running",
    deadline_s=150,
    text=lambda result: [f"{result.public_url}/mcp" if result.public_url else str(result.tunnel_id)],
    examples=[Example("A quick tunnel.", {"input": {"provider": "cloudflare"}}, runs=False)],
)
async def tunnel_start(ctx: Context, input: StartInput) -> TunnelState:
    """Open a tunnel to the running service, and again at each of its starts until `tunnel stop`."""
    if input.program is not None and input.provider not in _PROGRAM_OF:
        raise InvalidRequest(f"{input.provider} runs no program.", hint="leave --program out")
    ctx.note(provider=input.provider, once=input.once)
    home = ctx.services.home

    def edit(document: dict[str, Any]) -> None:
        tunnel = document.setdefault("tunnel", {})
        for (group, field), value in _settings(input).items():
            (tunnel.setdefault(group, {}) if group else tunnel)[field] = value
        if not input.once:
            tunnel["provider"] = input.provider

    changed = copy.deepcopy(read_document(home).value)
    edit(changed)
    state = await ctx.use(TunnelManager).expose(input.provider, parse(changed).tunnel, lambda: change_config(ctx, edit))
    is_kept = input.once or load(home).tunnel.provider == input.provider
    ctx.effect = "confirmed" if state.state == "running" and is_kept else "partial"
    ctx.note(address=state.public_url, tunnel=state.tunnel_id)
    return state


def _settings(input: StartInput) -> dict[tuple[str, str], str | int]:
    """The provider settings of the command, by their place in the config."""
    settings: dict[tuple[str, str], str | int | None] = {
        ("cloudflare", "hostname"): input.hostname,
        ("cloudflare", "name"): input.name,
        ("cloudflare", "tokenFile"): input.token_file,
        ("openai", "program"): input.tunnel_client,
        ("openai", "sha256"): input.sha256,
        ("openai", "tunnelId"): input.tunnel_id,
        ("openai", "apiKeyFile"): input.api_key_file,
        ("", "port"): input.port,
    }
    if input.program is not None:
        settings[_PROGRAM_OF[input.provider], "program"] = input.program
    return {place: value for place, value in settings.items() if value is not None}
