"""config validate: check the file. The rest of `config` are operations of the owner."""

from typing import Annotated

import typer

from computer_linker.cli.output import print_json, say
from computer_linker.cli.places import current_config, state_home

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]


def register(app: typer.Typer) -> None:
    """Add `config validate`."""
    group = typer.Typer(help="Show, check and change config.json.", rich_markup_mode=None)
    app.add_typer(group, name="config", no_args_is_help=True)
    group.command("validate")(_validate)


def _validate(as_json: Json = False) -> None:
    """Check the file and say whether a release could go out from here."""
    from computer_linker.service.doctor import diagnostics

    home = state_home()
    found = diagnostics(current_config(home), home)
    release = found.release_readiness()
    if as_json:
        print_json(
            {"valid": True, "findings": [item.to_wire() for item in found.findings], "releaseReadiness": release}
        )
    else:
        say(f"config.json is valid; release readiness: {release['status']}")
        for item in found.findings:
            say(f"{item.severity}: {item.message} {item.remedy}")
    raise typer.Exit(1 if release["status"] == "blocked" else 0)
