"""hub without a command: serve the hub of a fleet in the foreground."""

from pathlib import Path
from typing import Annotated

import typer

from computer_linker.cli.output import note, print_json
from computer_linker.cli.owner import ask, show
from computer_linker.cli.places import state_home
from computer_linker.cli.serve import Host, Port, announced, serving
from computer_linker.client.socket_client import running_url
from computer_linker.fleet.settings import HubRequest
from computer_linker.owner.hub.start import hub_start
from computer_linker.service.fleet import HubState


def register(app: typer.Typer) -> None:
    """Add `hub`; its commands are the owner's operations."""
    hub = typer.Typer(invoke_without_command=True)
    app.add_typer(hub, name="hub")
    hub.callback(invoke_without_command=True)(_hub)


def _hub(
    context: typer.Context,
    server: Annotated[str | None, typer.Option(metavar="URL", help="tls://HOST:PORT of the NATS server.")] = None,
    creds: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The credentials file; only you may read it.")
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who vouches for the server, if not the system.")
    ] = None,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="A server of its own on this machine, to try it.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Leave it to the service in the background.")] = False,
    host: Host = None,
    port: Port = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Be the hub of a fleet: one MCP endpoint, over HTTP and stdio, for all machines that joined through a NATS server."""
    if context.invoked_subcommand is not None:
        return
    request = HubRequest(url=server, creds=_absolute(creds), ca=_absolute(ca), embedded=embedded)
    state = ask(hub_start, request, HubState, where="service" if detach else "anywhere")
    if as_json:
        print_json(state.to_wire())
    else:
        show(hub_start, state)
    if detach or running_url(state_home()) is not None:
        return
    from computer_linker.serve.run import Reach

    message = "serving %s for all machines: scope MACHINE/SCOPE"
    serving(state_home(), Reach(host, port, lambda at: note(message % at), announce=announced))


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())
