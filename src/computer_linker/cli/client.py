"""client: how to connect each client, and whether that works."""

import json
from typing import Annotated, Any

import typer

from computer_linker.cli.output import print_json, say
from computer_linker.cli.places import current_config, running_service, state_home


def register(app: typer.Typer) -> None:
    """Add `client` and its commands."""
    group = typer.Typer(help="Connect an MCP client, and check that it works.", rich_markup_mode=None)
    app.add_typer(group, name="client", no_args_is_help=True)
    group.command("setup")(_setup)
    group.command("smoke")(_smoke)


def _setup(
    show_token: Annotated[bool, typer.Option("--show-token", help="Put the real token into the lines.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Print the line or file that connects each client."""
    from computer_linker.service.client_setup import client_setup

    home = state_home()
    url = (running_service(home) or {}).get("localUrl")
    answer = client_setup(current_config(home), home, url, show_token=show_token)
    if as_json:
        print_json(answer)
    else:
        _show(answer)


def _show(answer: dict[str, Any]) -> None:
    say("Over stdio (no token needed; the service starts by itself):")
    for name, line in answer["stdio"]["lines"].items():
        say(f"  {name}: {line}")
    for name in ("cursor", "vscode"):
        say(f"  {name}: put into {answer[name]['file']}: {json.dumps(answer[name]['content'])}")
    http = answer["http"]
    say(f"Over HTTP ({'running' if http['running'] else 'start it with: computer-linker start'}): {http['localUrl']}")
    for name, line in http["lines"].items():
        say(f"  {name}: {line}")
    say(f"First prompt: {answer['firstPrompt']}")


def _smoke(as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False) -> None:
    """Connect as a client would, over stdio, and make one read-only call in each folder scope."""
    from computer_linker.cli.self_test import answer_with, smoke

    home = state_home()
    answer_with(smoke(home, current_config(home)), as_json=as_json)
