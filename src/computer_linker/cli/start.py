"""start: set up what is missing, say what is exposed and how to connect, then serve."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast
from urllib.parse import urlsplit

import typer

from computer_linker import __version__
from computer_linker.cli.output import CliError, note, say
from computer_linker.cli.owner import ask, show, warn_first
from computer_linker.cli.places import current_config, state_home
from computer_linker.cli.serve import Host, Port, announced, list_listeners, serving
from computer_linker.client.socket_client import running_url
from computer_linker.config.schema import Config
from computer_linker.config.store import exists
from computer_linker.model.scope import Scope
from computer_linker.owner.setup import SetUp, SetupInput, setup, setup_cautions
from computer_linker.owner.tunnel.start import StartInput, tunnel_start
from computer_linker.service.tunnels import check_can_open, surroundings_without_service
from computer_linker.tunnels.record import TunnelState

if TYPE_CHECKING:
    from computer_linker.config.schema import TunnelName
    from computer_linker.tunnels.record import TunnelRecord

Folder = Annotated[Path | None, typer.Argument(help="The folder to expose. Left out: what is configured, or a demo.")]
Write = Annotated[bool | None, typer.Option("--write/--read-only", help="Whether files may be changed.")]
Shell = Annotated[bool, typer.Option("--shell", help="Allow commands from the default list, inside the sandbox.")]
Codex = Annotated[bool, typer.Option("--codex", help="Allow the local Codex CLI.")]
Screen = Annotated[bool, typer.Option("--screen", help="Allow screenshots.")]
Git = Annotated[bool, typer.Option("--git", help="Allow staging, commits and worktrees.")]
Tunnel = Annotated[
    str | None,
    typer.Option(
        "--tunnel",
        metavar="PROVIDER",
        help="Expose MCP to the internet for this run: cloudflare, tailscale, openai, ...",
    ),
]


def register(app: typer.Typer) -> None:
    """Add `start` and `expose`."""

    @app.command()
    def start(
        folder: Folder = None,
        write: Write = None,
        shell: Shell = False,
        codex: Codex = False,
        screen: Screen = False,
        git: Git = False,
        host: Host = None,
        port: Port = None,
        tunnel: Tunnel = None,
    ) -> None:
        """Expose a folder to AI clients: set up what is missing, then serve."""
        named = None if folder is None else str(folder.expanduser().absolute())
        choices = SetupInput(folder=named, write=write, shell=shell, codex=codex, screen=screen, git=git)
        _run(choices, host, port, tunnel)

    @app.command()
    def expose(
        provider: Annotated[
            str, typer.Argument(help="cloudflare, cloudflare-named, tailscale, tailscale-serve, openai, ssh or manual.")
        ],
    ) -> None:
        """Serve what is configured and open a tunnel to it: the older form of `start --tunnel`."""
        _run(SetupInput(), None, None, provider)


def _run(choices: SetupInput, host: str | None, port: int | None, tunnel: str | None = None) -> None:
    """Set up, say what is exposed once the service listens, and serve until it is stopped."""
    from computer_linker.serve.run import Reach
    from computer_linker.transports.http.own_address import for_this_machine

    home = state_home()
    # First: when the tunnel cannot be opened, nothing is set up, served or changed.
    requested = _checked_tunnel(home, tunnel) if exists(home) else None
    warn_first(setup_cautions(choices, home))
    made = ask(setup, choices, SetUp)
    config = current_config(home)
    for sentence in made.done:
        note(sentence)
    requested = requested or _checked_tunnel(home, tunnel)
    # An on-demand service has no address; it is replaced.
    adds = made.done or requested or choices.folder is not None
    running = running_url(home) if adds and host is None and port is None else None
    if running is not None and requested is not None:
        show(tunnel_start, ask(tunnel_start, StartInput(provider=requested, once=True), TunnelState))
        return
    if running is not None:
        since = "serves it from now on; it runs already" if made.done else "serves it already"
        note(f"The service at {running} {since}.")
        return

    def ready(url: str) -> None:
        for line in welcome(config, home, for_this_machine(url), host or config.host):
            say(line)
        sys.stdout.flush()

    def announce(record: "TunnelRecord") -> None:
        announced(record)
        for line in reachable(record):
            say(line)
        sys.stdout.flush()

    serving(home, Reach(host, port, ready, requested, announce, list_listeners))


def _checked_tunnel(home: Path, name: str | None) -> "TunnelName | None":
    """Return the provider, if its tunnel can be opened here. Raises CliError, having changed nothing."""
    if name is None:
        return None
    from computer_linker.tunnels.supervisor import NAMES

    if name not in NAMES:
        raise CliError(f"there is no tunnel provider {name[:40]!r}", "there are: " + ", ".join(NAMES), 2)
    requested = cast("TunnelName", name)
    check_can_open(requested, surroundings_without_service(home, current_config(home)))
    return requested


def welcome(config: Config, home: Path, url: str, host: str = "127.0.0.1") -> list[str]:
    """Return the summary when the service is ready; 15 lines at most."""
    from computer_linker.service.client_setup import environment, program, stdio_lines

    lines, me = stdio_lines(home), shlex.join(program())
    here = "".join(f"{name}={shlex.quote(value)} " for name, value in environment(home).items())
    token = (
        f"needs the owner token: {me} token show" if config.owner_token else "no token: any local program can use it"
    )
    shown = [f"  {scope.id}: {_rights(scope)}  {' '.join(scope.roots)}".rstrip() for scope in config.scopes[:5]]
    if len(config.scopes) > 5:
        shown.append(f"  and {len(config.scopes) - 5} more: {me} scope list")
    return [
        f"Computer Linker {__version__} on {config.machine_name} exposes",
        *shown,
        *_home_warning(config.scopes),
        f"at {url} ({token}){_every_network(host)}{_paused(home, me)}",
        *_network_hint(host, url),
        "Connect a client in one line (stdio, no token needed):",
        # It also writes the rules without which Claude Code asks before each read.
        f"  Claude Code  {here}{me} client setup claude --write",
        f"  Codex        {lines['codex']}",
        f"  Inspector    {lines['inspector']}",
        f"Other clients: {me} client setup. Every day: {me} status. Ctrl-C stops the service.",
    ]


def _home_warning(scopes: list[Scope]) -> list[str]:
    """Return a warning for the first scope that holds more than a project."""
    from computer_linker.service.scopes import more_than_a_project

    reasons = ((scope.id, more_than_a_project(root)) for scope in scopes for root in scope.roots)
    return [f"  Careful: {name} {why}" for name, why in reasons if why is not None][:1]


def _every_network(host: str) -> str:
    from computer_linker.transports.http.own_address import EVERY

    return ", on every network of this computer" if host in EVERY else ""


def _paused(home: Path, me: str) -> str:
    from computer_linker.dispatch.pause import Pause

    return "" if Pause(home).now is None else f". PAUSED: clients are refused until `{me} unpause`"


def _network_hint(host: str, url: str) -> list[str]:
    """Return hints for a service that listens on all addresses: it accepts only its own names in the Host header."""
    from computer_linker.transports.http.own_address import EVERY, base_for_others, is_loopback

    if host not in EVERY:
        return []
    base = base_for_others(f"http://{EVERY[0]}:{urlsplit(url).port}")
    if is_loopback(base):
        return []
    return [
        f"  Other devices: --host {urlsplit(base).hostname} makes it answer at {base}/mcp (unencrypted: the token can be read)"
    ]


def reachable(record: "TunnelRecord") -> list[str]:
    """Return how a remote client connects, once the tunnel is open."""
    from computer_linker.service.client_setup import program
    from computer_linker.tunnels.supervisor import reach_of

    if record.state != "running":
        return []
    more = f"{shlex.join(program())} client chatgpt"
    if record.public_url is None:
        return [f"ChatGPT: make a connector, choose Tunnel and {record.tunnel_id}. All its fields: {more}"]
    where = {"server": "On your server alone", "tailnet": "From your tailnet alone"}.get(
        reach_of(record.provider, record.public_url)
    )
    if where is not None:
        return [f"{where}: {record.public_url}/mcp (with the owner token)"]
    return [
        f"From anywhere, MCP alone: {record.public_url}/mcp",
        f"ChatGPT: make a connector with that URL and OAuth; approve it with the owner token. All its fields: {more}",
    ]


def _rights(scope: Scope) -> str:
    words = {
        "fs:read": "read", "fs:write": "write", "command:run": "run commands", "codex:run": "run Codex",
        "screen:capture": "screenshots", "desktop:control": "desktop control", "clipboard:read": "clipboard",
    }  # fmt: skip
    return ", ".join(word for name, word in words.items() if name in scope.capabilities) or "nothing"
