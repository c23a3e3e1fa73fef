"""Tailscale Funnel in the foreground: when the program ends, tailscaled closes the funnel by itself."""

import re

from computer_linker.config.schema import Config, TunnelName
from computer_linker.tunnels.base import contract
from computer_linker.tunnels.program import Wanted
from computer_linker.tunnels.provided import ProgramTunnel

_ADDRESS = re.compile(r"^(https://[a-z0-9-]+(?:\.[a-z0-9-]+)+\.ts\.net(?::(?:8443|10000))?)/?(?: \(Funnel on\))?$")


class TailscaleFunnel(ProgramTunnel):
    """`tailscale funnel --yes PORT`. Other funnels of the machine are left alone: nothing is ever reset."""

    name: TunnelName = "tailscale"
    contract = contract(
        "tailscale", "tailscale funnel --yes <port>", "output", "The machine's own name in its tailnet."
    )

    _is_public = False

    def wanted(self, config: Config) -> Wanted:
        settings = config.tunnel.tailscale
        return Wanted("tailscale", settings.program, settings.sha256)

    def command(self, config: Config, port: int) -> tuple[list[str], dict[str, str]]:
        return ["funnel", "--yes", str(port)], {}

    def read_line(self, line: str) -> None:
        # After "Available within your tailnet" the address is private: only the one after this line is public.
        if line.startswith("Available on the internet"):
            self._is_public = True
        found = _ADDRESS.match(line.removeprefix("Available on the internet:").strip())
        if found and self._is_public and self.url is None:
            self.url = found.group(1)
            self.connected.set()
