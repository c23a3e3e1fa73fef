"""serve and stdio: run the service from the command line."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from computer_linker.cli.output import CliError, note
from computer_linker.cli.places import current_config, state_home
from computer_linker.errors import CannotServe, LinkError
from computer_linker.home import LOG_NAME

if TYPE_CHECKING:
    from computer_linker.serve.run import Reach
    from computer_linker.service.listeners import Listener
    from computer_linker.tunnels.record import TunnelRecord

Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen on, for this run.")]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, metavar="PORT", help="Port to listen on, for this run; 0 picks a free one."),
]


def register(app: typer.Typer) -> None:
    """Add `serve` and `stdio`."""

    @app.command()
    def serve(
        host: Host = None,
        port: Port = None,
        log: Annotated[
            bool, typer.Option("--log", help="Write the log to the state folder too, as a service.")
        ] = False,
    ) -> None:
        """Serve what is configured over HTTP and the private socket."""
        from computer_linker.serve.run import Reach

        reach = Reach(host, port, lambda url: note(f"serving {url}"), announce=announced, listening=list_listeners)
        try:
            serving(state_home(), reach, log_to_file=log)
        except (CliError, LinkError) as error:
            if log:
                _keep_failure(state_home(), error)
            raise

    @app.command()
    def stdio() -> None:
        """Speak MCP on stdin and stdout, for clients that start this program themselves."""
        from computer_linker.transports.stdio import main

        raise typer.Exit(main())


def serving(home: Path, reach: "Reach", *, log_to_file: bool = False) -> None:
    """Serve until stopped. Raises CliError when the service cannot start."""
    from computer_linker.config.store import exists
    from computer_linker.serve.run import serve as serve_until_stopped

    if exists(home):
        # Before a lock or a socket is created: an invalid config changes nothing.
        current_config(home)
    try:
        serve_until_stopped(home, reach, log_to_file=log_to_file)
    except CannotServe as error:
        raise CliError(error.message, error.hint) from None
    note("The service has ended.")


def _keep_failure(home: Path, error: CliError | LinkError) -> None:
    """Log why an unattended service did not start, where `service logs` finds it."""
    hint = error.hint if isinstance(error, CliError) else error.details.get("hint", "")
    with contextlib.suppress(OSError), (home / LOG_NAME).open("a", encoding="utf-8") as file:
        file.write(f"error: {error.message}\nhint: {hint}\n")


def list_listeners(found: "list[Listener]") -> None:
    """Print what listens beside the private sockets and an HTTP address of this computer alone, which is printed already."""
    for one in found:
        if one.reach != "user" and one.kind != "tunnel" and (one.kind, one.reach) != ("http", "machine"):
            careful = "Careful: " if one.kind == "http" else ""
            note(f"{careful}{one.kind} listens on {one.address} for {one.who}. Close it with: {one.close}")


def announced(record: "TunnelRecord") -> None:
    """Print the result of opening the tunnel."""
    if record.state == "running":
        note(f"The {record.provider} tunnel is open: {record.public_url or record.tunnel_id or 'no public address'}")
    elif record.state in ("refused", "failed", "waiting"):
        after = f" It is tried again at {record.retry_at}." if record.retry_at else ""
        note(f"The {record.provider} tunnel is not open. {record.last_error or ''}{after}")
        if record.hint:
            note(f"hint: {record.hint}")
