"""Cloudflare: a quick tunnel under a random name, and a named tunnel under the owner's hostname."""

import re

from computer_linker.config.schema import Config, TunnelName
from computer_linker.errors import ProviderUnavailable
from computer_linker.tunnels.base import Surroundings, contract
from computer_linker.tunnels.program import Wanted, private_text
from computer_linker.tunnels.running import ProgramTunnel

# The whole box of the announcement, so that a URL inside another message is never taken for ours.
_ANNOUNCED = re.compile(
    r"^(?:(?:\S+ )?INF )?\|\s+(https://(?!api\.)[a-z0-9]+(?:-[a-z0-9]+)*\.trycloudflare\.com)\s+\|$"
)
_CONNECTED = re.compile(r"\bRegistered tunnel connection\b")
_LOST = re.compile(
    r"\b(?:Unregistered tunnel connection|Lost connection with the edge|Connection terminated|Retrying connection)\b"
)
_WHICH = re.compile(r"\bconnIndex=(\d{1,3})\b")
_QUIET = ("--no-autoupdate", "--config", "/dev/null")
"""No self-update (the file would differ from the checked one), and no settings from elsewhere."""


class _Cloudflared(ProgramTunnel):
    """The common part of both: the program, and its several connections to Cloudflare."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._links: set[str] = set()

    def wanted(self, config: Config) -> Wanted:
        settings = config.tunnel.cloudflare
        return Wanted("cloudflared", settings.program, settings.sha256)

    def is_connected(self) -> bool:
        return bool(self._links)

    def read_line(self, line: str) -> None:
        found = _WHICH.search(line)
        which = found.group(1) if found else "0"
        if _CONNECTED.search(line):
            self._links.add(which)
        elif _LOST.search(line):
            self._links.discard(which)
        if self._links and self.url is not None:
            self.connected.set()


class CloudflareQuick(_Cloudflared):
    """`cloudflared tunnel --url`: no account, a new name at each start."""

    name: TunnelName = "cloudflare"
    contract = contract(
        "cloudflare",
        "quick",
        "cloudflared tunnel --url http://127.0.0.1:<port>",
        url_source="output",
        reach="internet",
        note="A new address at each start.",
    )

    def command(self, config: Config, port: int) -> tuple[list[str], dict[str, str]]:
        return ["tunnel", *_QUIET, "--url", f"http://127.0.0.1:{port}"], {}

    def read_line(self, line: str) -> None:
        found = _ANNOUNCED.match(line)
        if found and self.url is None:
            self.url = found.group(1)
        super().read_line(line)


class CloudflareNamed(_Cloudflared):
    """`cloudflared tunnel run`: the owner's hostname, by a token file or by the name of a tunnel created on this machine."""

    name: TunnelName = "cloudflare-named"
    contract = contract(
        "cloudflare-named",
        "named",
        "cloudflared tunnel run",
        url_source="config",
        reach="internet",
        note="tunnel.cloudflare.hostname is the address.",
    )

    def command(self, config: Config, port: int) -> tuple[list[str], dict[str, str]]:
        settings = config.tunnel.cloudflare
        if settings.hostname is None:
            raise ProviderUnavailable(
                "A named tunnel needs its hostname.",
                hint="computer-linker tunnel start cloudflare-named --hostname NAME",
            )
        self.url = f"https://{settings.hostname}"
        if settings.token_file is not None:
            # In the environment: arguments are readable by every user of this computer.
            token = private_text(settings.token_file, "tunnel token file", config)
            return ["tunnel", *_QUIET, "run"], {"TUNNEL_TOKEN": token}
        if settings.name is None:
            raise ProviderUnavailable(
                "A named tunnel needs a token file, or the name of a tunnel that was made on this computer.",
                hint="computer-linker tunnel start cloudflare-named --hostname NAME --token-file FILE",
            )
        # Its credentials are where `cloudflared tunnel create` put them, in the user's own home.
        home = self.around.environment.get("HOME", "/")
        url = f"http://127.0.0.1:{port}"
        return ["tunnel", "--no-autoupdate", "--url", url, "run", settings.name], {"HOME": home}
