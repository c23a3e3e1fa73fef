"""tunnel.start: make MCP reachable from elsewhere."""

import copy
from typing import TYPE_CHECKING, Annotated, Any

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
from computer_linker.service.tunnels import TunnelManager
from computer_linker.tunnels.record import TunnelState

if TYPE_CHECKING:
    from computer_linker.tunnels.fetching import Fetched

_PROGRAM_OF = {
    "cloudflare": "cloudflare",
    "cloudflare-named": "cloudflare",
    "tailscale": "tailscale",
    "tailscale-serve": "tailscale",
    "openai": "openai",
    "ssh": "ssh",
}
"""The config section with the program of each provider that runs one."""


class StartInput(Model):
    provider: Annotated[
        TunnelName,
        Field(description="cloudflare, cloudflare-named, tailscale, tailscale-serve, openai, ssh or manual."),
        Positional("PROVIDER"),
    ]
    destination: Annotated[
        str | None, Field(description="ssh: the server of your own, as user@host."), Positional("USER@HOST")
    ] = None
    once: Annotated[bool, Field(description="For this run of the service only.")] = False
    hostname: Annotated[str | None, Field(description="cloudflare-named, ssh: the hostname that leads here.")] = None
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
    fetch_from: Annotated[
        str | None,
        Field(description="openai: the https address of a release; tunnel-client and its SHA256SUMS.txt are fetched."),
    ] = None
    identity_file: Annotated[str | None, Field(description="ssh: the private key."), LocalPath()] = None
    known_hosts: Annotated[
        str | None, Field(description="ssh: the file with the server's host key; otherwise your own."), LocalPath()
    ] = None
    ssh_port: Annotated[int | None, Field(ge=1, le=65535, description="ssh: the server's ssh port; 22.")] = None
    remote_port: Annotated[
        int | None, Field(ge=1, le=65535, description="ssh: the port on the server's loopback that leads here; 3941.")
    ] = None
    program: Annotated[str | None, Field(description="Where the provider's program is."), LocalPath()] = None
    port: Annotated[int | None, Field(ge=0, le=65535, description="The loopback port it leads to; 0 picks one.")] = None


@owner_operation(
    "tunnel.start",
    did="opened a tunnel[ by {provider}][ at {address}]",
    effect=Effect.CHANGE,
    where="running",
    deadline_s=150,
    text=lambda result: [f"{result.public_url}/mcp" if result.public_url else str(result.tunnel_id)],
    examples=[Example("A quick tunnel.", {"input": {"provider": "cloudflare"}}, runs=False)],
)
async def tunnel_start(ctx: Context, input: StartInput) -> TunnelState:
    """Open a tunnel to the running service, and again at each of its starts until `tunnel stop`."""
    _check(input)
    ctx.note(provider=input.provider, once=input.once)
    fetched = await _fetched(ctx, input) if input.fetch_from is not None else None
    try:
        state = await _opened(ctx, input, _settings(input, fetched))
    except BaseException:
        if fetched is not None:
            fetched.discard()
        raise
    is_kept = input.once or load(ctx.services.home).tunnel.provider == input.provider
    ctx.effect = "confirmed" if state.state == "running" and is_kept else "partial"
    ctx.note(address=state.public_url, tunnel=state.tunnel_id)
    return state


def _check(input: StartInput) -> None:
    if input.program is not None and input.provider not in _PROGRAM_OF:
        raise InvalidRequest(f"{input.provider} runs no program.", hint="leave --program out")
    if input.provider != "ssh" and input.destination is not None:
        raise InvalidRequest(f"{input.provider} takes no server.", hint="tunnel start ssh USER@HOST does")
    if input.provider != "openai" and input.fetch_from is not None:
        raise InvalidRequest("Only tunnel-client is fetched.", hint="tunnel start openai --fetch-from URL")


async def _fetched(ctx: Context, input: StartInput) -> "Fetched":
    from computer_linker.tunnels.fetching import fetch_program

    fetched = await fetch_program(str(input.fetch_from), "tunnel-client", ctx.services.home / "programs")
    ctx.note(archive=fetched.archive, sha256=fetched.sha256)
    return fetched


async def _opened(ctx: Context, input: StartInput, settings: dict[tuple[str, str], str | int]) -> TunnelState:
    def edit(document: dict[str, Any]) -> None:
        tunnel = document.setdefault("tunnel", {})
        for (group, field), value in settings.items():
            (tunnel.setdefault(group, {}) if group else tunnel)[field] = value
        if not input.once:
            tunnel["provider"] = input.provider

    changed = copy.deepcopy(read_document(ctx.services.home).value)
    edit(changed)
    return await ctx.use(TunnelManager).expose(input.provider, parse(changed).tunnel, lambda: change_config(ctx, edit))


def _settings(input: StartInput, fetched: "Fetched | None") -> dict[tuple[str, str], str | int]:
    """The provider settings of the command, by their place in the config."""
    settings: dict[tuple[str, str], str | int | None] = {
        ("ssh" if input.provider == "ssh" else "cloudflare", "hostname"): input.hostname,
        ("cloudflare", "name"): input.name,
        ("cloudflare", "tokenFile"): input.token_file,
        ("openai", "program"): str(fetched.path) if fetched is not None else input.tunnel_client,
        ("openai", "sha256"): fetched.sha256 if fetched is not None else input.sha256,
        ("openai", "tunnelId"): input.tunnel_id,
        ("openai", "apiKeyFile"): input.api_key_file,
        ("ssh", "destination"): input.destination,
        ("ssh", "port"): input.ssh_port,
        ("ssh", "remotePort"): input.remote_port,
        ("ssh", "identityFile"): input.identity_file,
        ("ssh", "knownHosts"): input.known_hosts,
        ("", "port"): input.port,
    }
    if input.program is not None:
        settings[_PROGRAM_OF[input.provider], "program"] = input.program
    return {place: value for place, value in settings.items() if value is not None}
