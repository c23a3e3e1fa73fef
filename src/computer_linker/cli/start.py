"""start: set up what is missing, say what is exposed and how to connect, then serve."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from computer_linker import __version__
from computer_linker.cli.output import note, say
from computer_linker.cli.places import state_home
from computer_linker.config.schema import Config
from computer_linker.model.scope import Scope

if TYPE_CHECKING:
    from computer_linker.service.setup import Wishes
    from computer_linker.tunnels.record import TunnelRecord

Folder = Annotated[Path | None, typer.Argument(help="The folder to expose. Left out: what is configured, or a demo.")]
Write = Annotated[bool | None, typer.Option("--write/--read-only", help="Whether files may be changed.")]
Shell = Annotated[bool, typer.Option("--shell", help="Allow commands from the default list, inside the sandbox.")]
Codex = Annotated[bool, typer.Option("--codex", help="Allow the local Codex CLI.")]
Screen = Annotated[bool, typer.Option("--screen", help="Allow screenshots.")]
Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen on, for this run.")]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, metavar="PORT", help="Port to listen on, for this run; 0 picks a free one."),
]
Tunnel = Annotated[
    str | None,
    typer.Option(
        "--tunnel",
        metavar="PROVIDER",
        help="Expose MCP to the internet for this run: cloudflare, tailscale, openai, ...",
    ),
]


def register(app: typer.Typer) -> None:
    """Add `start`."""

    @app.command()
    def start(
        folder: Folder = None,
        write: Write = None,
        shell: Shell = False,
        codex: Codex = False,
        screen: Screen = False,
        host: Host = None,
        port: Port = None,
        tunnel: Tunnel = None,
    ) -> None:
        """Expose a folder to AI clients: set up what is missing, then serve."""
        from computer_linker.service.setup import Wishes

        run(Wishes(folder, write, shell, codex, screen), host, port, tunnel)


def run(wishes: "Wishes", host: str | None, port: int | None, tunnel: str | None = None) -> None:
    """Set up, say what is exposed once the service listens, and serve until it is stopped."""
    from computer_linker.cli.serve import announced, serving
    from computer_linker.cli.tunnel import checked_tunnel, expose_running
    from computer_linker.config.store import exists
    from computer_linker.service.run import Reach
    from computer_linker.service.setup import set_up

    home = state_home()
    # First of all: when the tunnel may not be opened, nothing is set up, served or changed.
    wished = checked_tunnel(home, tunnel) if exists(home) else None
    made = set_up(home, wishes)
    for sentence in made.done:
        note(sentence)
    wished = wished or checked_tunnel(home, tunnel)
    running = _running_at(home) if (made.done or wished) and host is None and port is None else None
    if running is not None and wished is not None:
        expose_running(wished, keep=False)
        return
    if running is not None:
        note(f"The service at {running} serves it from now on; it runs already.")
        return

    def ready(url: str) -> None:
        for line in welcome(made.config, home, url, host or made.config.host):
            say(line)
        sys.stdout.flush()

    def told(record: "TunnelRecord") -> None:
        announced(record)
        for line in reachable(record):
            say(line)
        sys.stdout.flush()

    serving(home, Reach(host, port, ready, wished, told))


def _running_at(home: Path) -> str | None:
    """Where a service that listens already does; one that local clients started makes way and does not count."""
    from computer_linker.cli.places import running_service

    return (running_service(home) or {}).get("localUrl")


def welcome(config: Config, home: Path, url: str, host: str = "127.0.0.1") -> list[str]:
    """What a person wants to know when the service is up; 15 lines at most."""
    from computer_linker.service.client_setup import program, stdio_lines

    lines, me = stdio_lines(home), shlex.join(program())
    token = (
        f"needs the owner token: {me} token show" if config.owner_token else "no token: any local program can use it"
    )
    shown = [f"  {scope.id}: {_rights(scope)}  {' '.join(scope.roots)}".rstrip() for scope in config.scopes[:5]]
    if len(config.scopes) > 5:
        shown.append(f"  and {len(config.scopes) - 5} more: {me} scope list")
    return [
        f"Computer Linker {__version__} on {config.machine_name} exposes",
        *shown,
        *_much(config.scopes),
        f"at {url} ({token})",
        *_on_the_network(host, url),
        "Connect a client in one line (stdio, no token needed):",
        f"  Claude Code  {lines['claude']}",
        f"  Codex        {lines['codex']}",
        f"  Inspector    {lines['inspector']}",
        f"Other clients: {me} client setup. Every day: {me} status. Ctrl-C stops the service.",
    ]


def _much(scopes: list[Scope]) -> list[str]:
    """A warning for a scope that is a person's whole home folder, or more."""
    own = Path.home().resolve()
    whole = [scope.id for scope in scopes for root in scope.roots if own.is_relative_to(Path(root).resolve())]
    if not whole:
        return []
    return [f"  Careful: {whole[0]} is your whole home folder. Keys and passwords stay closed; all else in it is open."]


def _on_the_network(host: str, url: str) -> list[str]:
    """What a service that listens on every address answers to: it compares the name it is called by, and knows only its own."""
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
    """How a client elsewhere connects, once the tunnel is open."""
    from computer_linker.service.client_setup import program

    if record.state != "running":
        return []
    more = f"{shlex.join(program())} client chatgpt"
    if record.public_url is None:
        return [f"ChatGPT: make a connector, choose Tunnel and {record.tunnel_id}. All its fields: {more}"]
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
