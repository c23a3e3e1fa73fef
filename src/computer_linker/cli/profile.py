"""profile: this computer's connection profile, the token left out."""

from typing import Annotated, Any

import typer

from computer_linker.cli.output import print_json, table
from computer_linker.cli.places import current_config, running_service, state_home


def register(app: typer.Typer) -> None:
    """Add `profile`."""

    @app.command()
    def profile(
        show_token: Annotated[bool, typer.Option("--show-token", help="Put the real token in.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    ) -> None:
        """Show which computer this is and how it is reached."""
        from computer_linker.service.client_setup import connection_profile

        home = state_home()
        url = (running_service(home) or {}).get("localUrl")
        answer = connection_profile(current_config(home), home, url, show_token=show_token)
        if as_json:
            print_json(answer)
        else:
            table([(name, _plain(value)) for name, value in answer.items()])


def _plain(value: Any) -> str:
    """Format a value for a person."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{name}={each}" for name, each in value.items()) or "none"
    return "none" if value is None else str(value)
