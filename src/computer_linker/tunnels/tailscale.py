"""Tailscale Funnel and Serve in the foreground: when the program ends, tailscaled closes the address by itself."""

import re

from computer_linker.config.schema import Config, TunnelName
from computer_linker.tunnels.base import contract
from computer_linker.tunnels.program import Wanted
from computer_linker.tunnels.running import ProgramTunnel

_ADDRESS = re.compile(
    r"^(https://[a-z0-9-]+(?:\.[a-z0-9-]+)+\.ts\.net(?::(?:8443|10000))?)/?(?: \((?:Funnel on|tailnet only)\))?$"
)
_PUBLIC = "Available on the internet"
_PRIVATE = "Available within your tailnet"


class _Tailscale(ProgramTunnel):
    """The common part of both: the program, and the address after the line that names who reaches it.

    Other addresses of the machine are left alone: nothing is ever reset.
    """

    verb: str
    announced: str
    """The line before the address; one after any other line has another reach than the owner asked for."""
    _is_announced = False

    def wanted(self, config: Config) -> Wanted:
        settings = config.tunnel.tailscale
        return Wanted("tailscale", settings.program, settings.sha256)

    def command(self, config: Config, port: int) -> tuple[list[str], dict[str, str]]:
        return [self.verb, "--yes", str(port)], {}

    def read_line(self, line: str) -> None:
        if line.startswith((_PUBLIC, _PRIVATE)):
            self._is_announced = line.startswith(self.announced)
        found = _ADDRESS.match(line.removeprefix(f"{self.announced}:").strip())
        if found and self._is_announced and self.url is None:
            self.url = found.group(1)
            self.connected.set()


class TailscaleFunnel(_Tailscale):
    """`tailscale funnel --yes PORT`: the machine's name in its tailnet, reachable from the internet."""

    name: TunnelName = "tailscale"
    verb, announced = "funnel", _PUBLIC
    contract = contract(
        "tailscale",
        "funnel",
        "tailscale funnel --yes <port>",
        url_source="output",
        reach="internet",
        note="The machine's own name in its tailnet.",
    )


class TailscaleServe(_Tailscale):
    """`tailscale serve --yes PORT`: the same name, reachable from the machines of the tailnet alone."""

    name: TunnelName = "tailscale-serve"
    verb, announced = "serve", _PRIVATE
    contract = contract(
        "tailscale-serve",
        "serve",
        "tailscale serve --yes <port>",
        url_source="output",
        reach="tailnet",
        note="For the machines of the tailnet alone; ChatGPT and other hosted clients do not reach it.",
    )
