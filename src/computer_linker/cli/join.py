"""join and leave: make this machine reachable through a NATS server, for the hubs its owner allows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say
from computer_linker.cli.peer import AsJson
from computer_linker.cli.places import control

Credentials = Annotated[Path | None, typer.Option(metavar="FILE", help="The credentials file; only you may read it.")]
Authority = Annotated[Path | None, typer.Option(metavar="FILE", help="Who vouches for the server, if not the system.")]


def register(app: typer.Typer) -> None:
    """Add `join` and `leave`."""
    app.command("join")(_join)
    app.command("leave")(_leave)


def _join(
    url: Annotated[str | None, typer.Argument(help="tls://HOST:PORT; an invitation names it itself.")] = None,
    creds: Credentials = None,
    ca: Authority = None,
    name: Annotated[str | None, typer.Option(help="What to be called in the fleet.")] = None,
    hub: Annotated[
        str | None, typer.Option(metavar="KEY", help="The hub that may call; an invitation names it.")
    ] = None,
    hub_name: Annotated[str | None, typer.Option(help="What to call that hub in this machine's history.")] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="RIGHT", help="What the hub may use here: SCOPE or SCOPE:CAPABILITY.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Join a fleet; without arguments, say which. Nothing may be used by anyone until you --allow it."""
    if not any((url, creds, ca, name, hub, allow)):
        _show(control("fleet.status"), as_json=as_json)
        return
    answer = control(
        "fleet.join", url=url, creds=absolute(creds), ca=absolute(ca), name=name, hub=hub, hubName=hub_name,
        grants=allow or [],
    )  # fmt: skip
    _show(answer, as_json=as_json)
    if not answer["connected"]:
        raise CliError(
            f"the server cannot be reached yet: {answer['problem'] or 'no answer'}",
            "the service goes on trying; computer-linker leave ends that",
        )


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    elif answer["joined"] is None:
        note(f"This machine is part of no fleet. Its key: {answer['key']}")
    else:
        say(f"Joined {answer['joined']['url']}. This machine's key: {answer['key']}")
        for allowed in answer["joined"]["hubs"]:
            note(
                f"{allowed['name']} may use here: {', '.join(allowed['grants']) or 'nothing (give it with --allow SCOPE)'}"
            )
        if not answer["joined"]["hubs"]:
            note("No hub may use anything here. To let one: computer-linker join URL --hub KEY --allow SCOPE")


def _leave(as_json: AsJson = False) -> None:
    """Leave the fleet: nobody reaches this machine through it from now on."""
    answer = control("fleet.leave")
    if as_json:
        print_json(answer)
    elif answer["left"] is None:
        note("This machine is part of no fleet.")
    else:
        say(f"Left {answer['left']}.")


def absolute(path: Path | None) -> str | None:
    """The path as the service can open it, whose working folder is another."""
    return None if path is None else str(path.absolute())
