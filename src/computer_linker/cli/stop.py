"""stop: end the running service."""

import typer

from computer_linker.cli.output import CliError, note
from computer_linker.cli.places import state_home


def register(app: typer.Typer) -> None:
    """Add `stop`."""

    @app.command()
    def stop() -> None:
        """End the service of this state folder, letting what is under way finish or stop cleanly."""
        from computer_linker.client.socket_client import ask_service

        answer = ask_service(state_home(), {"action": "stop"})
        if answer is None:
            note("No service runs.")
        elif not answer.get("ok"):
            raise CliError(str(answer.get("error", "the service did not stop")))
        else:
            note("The service is ending.")
