"""completion: the shell's completion script."""

from enum import StrEnum
from typing import Annotated

import typer

from computer_linker.cli.output import say


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def register(app: typer.Typer) -> None:
    """Add `completion`."""

    @app.command()
    def completion(shell: Annotated[Shell, typer.Argument(help="Which shell.")]) -> None:
        """Print the completion script, for example: computer-linker completion bash >> ~/.bashrc"""
        from typer.completion import get_completion_script  # type: ignore[attr-defined]  # it is there in every typer

        names = {"prog_name": "computer-linker", "complete_var": "_COMPUTER_LINKER_COMPLETE"}
        say(get_completion_script(**names, shell=shell.value))
