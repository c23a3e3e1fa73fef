"""Everything of a running service that accepts connections: where, from whom, since when, and what closes it."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from computer_linker.config.diagnose import is_loopback
from computer_linker.config.live import LiveConfig
from computer_linker.config.schema import Config
from computer_linker.home import BRIDGE_NAME, SOCKET_NAME
from computer_linker.model.base import Model
from computer_linker.service.fleet import FleetManager
from computer_linker.service.lifetime import Lifetime
from computer_linker.service.peers import PeerManager
from computer_linker.service.tunnels import TunnelManager
from computer_linker.services import Services
from computer_linker.transports.http.own_address import EVERY
from computer_linker.tunnels.base import Reach as TunnelReach

Reach = Literal["user", "machine", "network", "internet"]
Kind = Literal["socket", "bridge", "http", "approvalPage", "tunnel", "peers", "hub", "fleet"]
_SOCKETS: tuple[tuple[Kind, str], ...] = (("socket", SOCKET_NAME), ("bridge", BRIDGE_NAME))
_STOP = "computer-linker stop"
_CALLERS: dict[TunnelReach, tuple[Reach, str]] = {
    "internet": ("internet", "anyone on the internet"),
    "provider": ("internet", "the products of the tunnel's provider"),
    "tailnet": ("network", "the machines of your tailnet"),
    "server": ("network", "programs on your server"),
}


class Listener(Model):
    """One address that accepts connections."""

    kind: Kind
    address: str
    reach: Annotated[Reach, Field(description="How far away a caller can be.")]
    who: Annotated[str, Field(description="Who gets an answer there.")]
    since: Annotated[str | None, Field(description="When it began, in UTC; null where that is not recorded.")]
    close: Annotated[str, Field(description="The command that closes it.")]


def listeners(services: Services, config: Config | None) -> list[Listener]:
    """Every listener of this process; empty when it is not a service. `config` is None while the file is refused."""
    lifetime = services.peek(Lifetime)
    if lifetime is None:
        return []
    return [
        *_local(services, lifetime),
        *_http(services, config, lifetime),
        *_tunnel(services),
        *_peers(services),
        *_fleet(services),
    ]


def _local(services: Services, lifetime: Lifetime) -> list[Listener]:
    ours = "your own programs, which no token is asked of"
    return [
        Listener(
            kind=kind, address=str(services.home / name), reach="user", who=ours, since=lifetime.since, close=_STOP
        )
        for kind, name in _SOCKETS
    ]


def _http(services: Services, config: Config | None, lifetime: Lifetime) -> list[Listener]:
    url = lifetime.bound_url
    if url is None:
        return []
    host = bound_host(lifetime) or ""
    reach: Reach = "machine" if is_loopback(host) else "network"
    where = "any program of this computer" if reach == "machine" else "any computer that reaches this address"
    if host in EVERY:
        where += " under the name localhost (others get 421: serve --host ADDRESS)"
    who = f"{where}, {_credential(config)}"
    found = [Listener(kind="http", address=url, reach=reach, who=who, since=lifetime.since, close=_STOP)]
    if config is not None and config.approval_page:
        page = url.removesuffix("/mcp") + "/approve"
        who = "a phone that was given a one-time link"
        close = "computer-linker config set approvalPage false"
        live = services.current_config
        since = live.approval_page_since if isinstance(live, LiveConfig) else None
        found.append(Listener(kind="approvalPage", address=page, reach=reach, who=who, since=since, close=close))
    return found


def _credential(config: Config | None) -> str:
    if config is None:
        return "but every request is refused until the config is repaired"
    return "without a token" if config.owner_token is None else "with the owner token or an OAuth session"


def bound_host(lifetime: Lifetime | None) -> str | None:
    """The address that the HTTP service of this process is bound to; None without one."""
    return None if lifetime is None or lifetime.bound_url is None else urlsplit(lifetime.bound_url).hostname


def _tunnel(services: Services) -> list[Listener]:
    tunnels = services.peek(TunnelManager)
    state = tunnels.state() if tunnels is not None else None
    if state is None or state.provider is None or state.state not in ("running", "reconnecting"):
        return []
    address = f"{state.public_url}/mcp" if state.public_url else str(state.tunnel_id or state.provider)
    from computer_linker.tunnels.supervisor import reach_of

    reach, callers = _CALLERS[reach_of(state.provider, state.public_url)]
    return [
        Listener(
            kind="tunnel",
            address=address,
            reach=reach,
            who=f"{callers}, with the owner token or an OAuth session",
            since=state.since,
            close="computer-linker tunnel stop",
        )
    ]


def _peers(services: Services) -> list[Listener]:
    peers = services.peek(PeerManager)
    if peers is None or peers.address is None or peers.listening is None:
        return []
    reach: Reach = "machine" if is_loopback(peers.address[0]) else "network"
    count = len(peers.paired())
    who = f"the {count} computers paired with this one" if count != 1 else "the computer paired with this one"
    close = "computer-linker peer listen --off"
    return [
        Listener(kind="peers", address=peers.listening, reach=reach, who=who, since=peers.listening_since, close=close)
    ]


def _fleet(services: Services) -> list[Listener]:
    fleet = services.peek(FleetManager)
    if fleet is None:
        return []
    found: list[Listener] = []
    if fleet.is_hub:
        hub = fleet.hub_state()
        if hub.embedded:
            who = "machines with credentials of this hub's NATS server"
            found.append(
                Listener(
                    kind="hub", address=hub.url, reach="network", who=who, since=None, close="computer-linker hub stop"
                )
            )
    joined = fleet.settings.joined
    if joined is not None:
        who = "hubs that this computer trusts, through that server; nothing listens here"
        found.append(
            Listener(
                kind="fleet",
                address=joined.place.url,
                reach="network",
                who=who,
                since=None,
                close="computer-linker leave",
            )
        )
    return found
