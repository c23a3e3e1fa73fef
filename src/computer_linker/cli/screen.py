"""screen: whether screenshots are available here, without taking one."""

from typing import Annotated

import typer

from computer_linker.cli.output import print_json, say, table
from computer_linker.cli.places import current_config, state_home


def register(app: typer.Typer) -> None:
    """Add `screen` and its command."""
    group = typer.Typer(help="Screenshots: whether they can be had, and for whom.", rich_markup_mode=None)
    app.add_typer(group, name="screen", no_args_is_help=True)
    group.command("status")(_status)

    @group.callback()
    def root() -> None:
        """Screenshots: whether they can be had, and for whom."""


def _status(as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False) -> None:
    """Show the capture provider, the system's permission and the scopes that allow it. No pixels are captured."""
    from computer_linker.computer.local.probe import this_computer
    from computer_linker.service.doctor import screenshot_readiness

    found = screenshot_readiness(this_computer())
    scopes = [scope.id for scope in current_config(state_home()).scopes if "screen:capture" in scope.capabilities]
    if as_json:
        print_json({"screenshot": found, "scopes": scopes})
        return
    rows = [
        ("screenshots", "ready" if found["available"] else "missing"),
        ("provider", found["backend"] or "none"),
        ("permission", found["permission"]["status"]),
        ("modes", ", ".join(found["modes"]) or "none"),
        ("scopes", ", ".join(scopes) or "none (allow with: computer-linker setup --screen)"),
    ]
    table(rows)
    if found["remedy"]:
        say(f"next: {found['remedy']}")
