"""serve, stop and stdio: the service's life as seen from the command line."""

from collections.abc import Callable
from pathlib import Path

import typer

from computer_linker.cli.output import CliError, note
from computer_linker.cli.places import current_config, state_home
from computer_linker.cli.start import Host, Port
from computer_linker.errors import CannotServe


def register(app: typer.Typer) -> None:
    """Add `serve` and `stdio`."""

    @app.command()
    def serve(host: Host = None, port: Port = None) -> None:
        """Serve what is configured over HTTP and the private socket."""
        serving(state_home(), host, port, lambda url: note(f"serving {url}"))

    @app.command()
    def stdio() -> None:
        """Speak MCP on stdin and stdout, for clients that start this program themselves."""
        from computer_linker.transports.stdio import main

        raise typer.Exit(main())


def serving(home: Path, host: str | None, port: int | None, ready: Callable[[str], None]) -> None:
    """Serve until stopped. Raises CliError when the service cannot start."""
    from computer_linker.config.store import exists
    from computer_linker.service.run import serve as serve_until_stopped

    if exists(home):
        # Before a lock is taken or a socket made: a config that cannot be used changes nothing.
        current_config(home)
    try:
        serve_until_stopped(home, host, port, ready)
    except CannotServe as error:
        raise CliError(error.message, error.hint) from None
    note("The service has ended.")
