"""setup: what `start` sets up, without serving."""

from typing import Annotated

import typer

from computer_linker.cli.output import print_json, say
from computer_linker.cli.places import running_service, state_home
from computer_linker.cli.start import Codex, Folder, Screen, Shell, Write


def register(app: typer.Typer) -> None:
    """Add `setup`."""

    @app.command()
    def setup(
        folder: Folder = None,
        write: Write = None,
        shell: Shell = False,
        codex: Codex = False,
        screen: Screen = False,
        as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    ) -> None:
        """Set up what is missing, as `start` does, without serving."""
        from computer_linker.service.setup import Wishes, set_up

        home = state_home()
        made = set_up(home, Wishes(folder, write, shell, codex, screen))
        if as_json:
            scopes = [scope.to_wire() for scope in made.config.scopes]
            print_json({"home": str(home), "machineId": made.config.machine_id, "done": made.done, "scopes": scopes})
            return
        for sentence in made.done or ["Everything was there already."]:
            say(sentence)
        url = (running_service(home) or {}).get("localUrl")
        say(f"The service at {url} uses it from now on." if url else "Serve with: computer-linker start")
