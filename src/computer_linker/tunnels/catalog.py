"""The providers by name."""

from typing import Any, get_args

from computer_linker.config.schema import TunnelName
from computer_linker.tunnels.base import Detected, Reach, Surroundings, Tunnel
from computer_linker.tunnels.cloudflare import CloudflareNamed, CloudflareQuick
from computer_linker.tunnels.manual import ManualProxy
from computer_linker.tunnels.openai import OpenAiTunnel
from computer_linker.tunnels.ssh import SshTunnel
from computer_linker.tunnels.tailscale import TailscaleFunnel, TailscaleServe

_KINDS = (CloudflareQuick, CloudflareNamed, TailscaleFunnel, TailscaleServe, OpenAiTunnel, SshTunnel, ManualProxy)
NAMES: tuple[str, ...] = get_args(TunnelName)


def make(name: TunnelName, around: Surroundings) -> Tunnel:
    """Create a tunnel of this provider, not opened yet."""
    kind = next(kind for kind in _KINDS if kind.name == name)
    return kind(around)


def detect_all(around: Surroundings) -> list[Detected]:
    """Each provider, and whether it can be used. Runs nothing."""
    return [kind(around).detect() for kind in _KINDS]


def reach_of(name: str, public_url: str | None) -> Reach:
    """Who reaches the address of an open tunnel. An https name on the owner's own server is public."""
    kind = next(kind for kind in _KINDS if kind.name == name)
    reach: Reach = kind.contract["modes"][0]["reach"]
    return "internet" if reach == "server" and (public_url or "").startswith("https:") else reach


def contracts() -> list[dict[str, Any]]:
    """The program of each provider, and the source of its URL."""
    return [kind.contract for kind in _KINDS]
