"""halt and resume: take the desktop back from every client, and give it back."""

from typing import Annotated

import typer

from computer_linker.cli.output import note, print_json, say
from computer_linker.cli.places import control

AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]


def register(app: typer.Typer) -> None:
    """Add `halt` and `resume`."""

    @app.command()
    def halt(as_json: AsJson = False) -> None:
        """Stop every act on the desktop now, release what is held, and refuse new ones until `resume`."""
        answer = control("halt")
        if as_json:
            print_json(answer)
        else:
            say(f"Halted; {answer['ended']} ended. Nobody acts on the desktop until: computer-linker resume")
            if not answer["still"]:
                note("One act was told to stop and has not stopped yet.")

    @app.command()
    def resume(as_json: AsJson = False) -> None:
        """Let clients act on the desktop again."""
        answer = control("resume")
        if as_json:
            print_json(answer)
        else:
            say("Clients may act on the desktop again." if answer["resumed"] else "Nothing was halted.")
