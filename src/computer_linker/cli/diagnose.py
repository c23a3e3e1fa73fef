"""diagnose: which hop between a client and this service does not work."""

from typing import Annotated

import typer

from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import current_config, running_service, state_home


def register(app: typer.Typer) -> None:
    """Add `diagnose` and its commands."""
    group = typer.Typer(help="Find the hop that does not work.", rich_markup_mode=None)
    app.add_typer(group, name="diagnose", no_args_is_help=True)
    group.command("client")(_client)


def _client(
    url: Annotated[str | None, typer.Argument(help="Another address of this service; its own when left out.")] = None,
    public: Annotated[bool, typer.Option("--public", help="Go by the public address of the config.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Play a connector's steps one by one: name, connection, TLS, OAuth, MCP; ends non-zero when a hop fails."""
    from computer_linker.service.connector.diagnosis import diagnose_client

    home = state_home()
    config = current_config(home)
    if public:
        if config.public_base_url is None:
            raise CliError("there is no public address", "computer-linker config set publicBaseUrl https://...")
        url = f"{config.public_base_url.rstrip('/')}/mcp"
    if url is not None and not url.startswith(("http://", "https://")):
        raise CliError("an address begins with http:// or https://", exit_code=2)
    answer = diagnose_client(config, home, (running_service(home) or {}).get("localUrl"), url)
    if as_json:
        print_json(answer)
    else:
        say(answer["url"])
        marks = {True: "ok", False: "error", None: "left out"}
        table([(marks[step["ok"]], step["hop"], step.get("detail", "")) for step in answer["steps"]])
        if answer["refused"]:
            say("refused lately: " + ", ".join(f"{count} x {reason}" for reason, count in answer["refused"].items()))
        for warning in answer["warnings"]:
            note(f"slow: {warning}")
        note(f"{answer['hop']} fails. {answer['remedy']}" if answer["hop"] else "No hop fails.")
    raise typer.Exit(1 if answer["hop"] else 0)
