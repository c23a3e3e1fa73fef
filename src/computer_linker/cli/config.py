"""config: show, validate, set, and where the file is."""

from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say
from computer_linker.cli.places import current_config, state_home

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_SETTABLE = ("machineName", "host", "port", "publicBaseUrl", "ownerToken", "approvalPage")


def register(app: typer.Typer) -> None:
    """Add `config` and its commands."""
    group = typer.Typer(help="Show, check and change config.json.", rich_markup_mode=None)
    app.add_typer(group, name="config", no_args_is_help=True)
    group.command("show")(_show)
    group.command("validate")(_validate)
    group.command("path")(_path)
    group.command("set")(_set)


def _show(
    show_token: Annotated[bool, typer.Option("--show-token", help="Include the owner token.")] = False,
    as_json: Json = False,
) -> None:
    """Print the config, the owner token left out. It is JSON with or without --json."""
    from computer_linker.config.load import load

    value = load(state_home()).to_wire()
    if not show_token and value["ownerToken"] is not None:
        value["ownerToken"] = "(hidden; --show-token shows it)"
    print_json(value)


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


def _path(as_json: Json = False) -> None:
    """Print where config.json is."""
    path = str(state_home() / "config.json")
    if as_json:
        print_json({"path": path})
    else:
        say(path)


def _set(
    name: Annotated[str, typer.Argument(help="One of: " + " ".join(_SETTABLE), autocompletion=lambda: list(_SETTABLE))],
    value: Annotated[str, typer.Argument(help="Its value: text, or JSON such as 4000, true or null.")],
) -> None:
    """Change one setting. Scopes are changed with `scope edit`."""
    from computer_linker.config.runtime import effective
    from computer_linker.config.store import update
    from computer_linker.registry.cli_options import read_value

    if name not in _SETTABLE:
        raise CliError(f"{name} cannot be set", "settings are " + ", ".join(_SETTABLE), 2)
    home = state_home()
    given = value if name == "machineName" else read_value(value)

    def edit(document: dict[str, Any]) -> None:
        document[name] = given

    def check(config: Any) -> list[str]:
        effective(config, home)
        return []

    update(home, edit, check)
    note(f"Set {name}." + (" It holds after the service's next start." if name in ("host", "port") else ""))
