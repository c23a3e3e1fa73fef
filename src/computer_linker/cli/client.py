"""client: connect, disconnect and test clients."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import current_config, running_service, state_home

if TYPE_CHECKING:
    from computer_linker.config.schema import Config
    from computer_linker.service.clients.form import Client
    from computer_linker.service.clients.setup import Service


class Over(StrEnum):
    """How a client reaches the service."""

    stdio = "stdio"
    http = "http"


class ForChatGpt(StrEnum):
    """What `client chatgpt` prints."""

    connector = "connector"
    url = "url"
    manifest = "manifest"


AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
ShowToken = Annotated[bool, typer.Option("--show-token", help="Put the real token into what is shown or written.")]
Name = Annotated[str, typer.Argument(help="A client that `client list` names.")]


def register(app: typer.Typer) -> None:
    """Add `client` and its commands."""
    group = typer.Typer(help="Connect an MCP client, and check that it works.", rich_markup_mode=None)
    app.add_typer(group, name="client", no_args_is_help=True)
    group.command("list")(_list)
    group.command("setup")(_setup)
    group.command("remove")(_remove)
    group.command("bundle")(_bundle)
    group.command("chatgpt")(_chatgpt)
    group.command("smoke")(_smoke)


def _list(as_json: AsJson = False) -> None:
    """Show which clients are installed, and which have an entry for this service."""
    from computer_linker.service.clients.catalog import this_user
    from computer_linker.service.clients.setup import list_clients

    found = list_clients(this_user())
    if as_json:
        print_json({"clients": found})
        return
    rows = [
        (
            client["name"],
            _standing(client),
            client["file"],
            client["problem"] or "",
        )
        for client in found
    ]
    table(rows, ("client", "", "settings", ""))
    say("next: computer-linker client setup NAME --write")


def _standing(client: dict[str, Any]) -> str:
    if client["projects"]:
        return f"connected in {' '.join(client['projects'])}"
    return "connected" if client["connected"] else "installed" if client["installed"] else "not found"


def _setup(
    name: Annotated[str | None, typer.Argument(help="A client that `client list` names; none for every line.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the entry into the client's settings.")] = False,
    over: Annotated[Over, typer.Option("--over", help="Start the program, or connect to the service.")] = Over.stdio,
    details: Annotated[bool, typer.Option("--details", help="Add the tools and instructions to paste.")] = False,
    show_token: ShowToken = False,
    as_json: AsJson = False,
) -> None:
    """Print what connects a client; with a name and --write, write it, keeping a backup."""
    if name is not None:
        _set_up_one(name, over, write=write, show_token=show_token, as_json=as_json)
        return
    if write:
        raise CliError("--write needs the name of a client", "computer-linker client list")
    from computer_linker.service.client_setup import client_setup

    home = state_home()
    url = (running_service(home) or {}).get("localUrl")
    answer = client_setup(current_config(home), home, url, show_token=show_token)
    if as_json:
        print_json(answer)
        return
    _show(answer)
    if details:
        say(
            f"\nTools: {' '.join(answer['tools'])}\n\nInstructions to paste into a client:\n\n{answer['agentInstructions']}"
        )


def _set_up_one(name: str, over: Over, *, write: bool, show_token: bool, as_json: bool) -> None:
    from computer_linker.service.clients.catalog import this_user
    from computer_linker.service.clients.faults import CannotEdit
    from computer_linker.service.clients.setup import set_up

    client = _client(name)
    try:
        if write:
            answer = _written(name, over, show_token=show_token)
        else:
            connection = _service().connection(over.value, with_token=show_token)
            answer = set_up(client, this_user(), connection, write=False)
    except CannotEdit as error:
        raise _left_alone(client, error) from None
    if as_json:
        print_json(answer)
        return
    _show_change(answer, "has this entry already")
    if answer["needed"] and not write:
        note(f"Nothing was written. Write it with: computer-linker client setup {name} --write")


def _written(name: str, over: Over, *, show_token: bool) -> dict[str, Any]:
    from computer_linker.cli.owner import ask
    from computer_linker.owner.client.setup import ClientSetupInput, client_setup
    from computer_linker.service.clients.change import ClientChange

    url = (running_service(state_home()) or {}).get("localUrl")
    given = ClientSetupInput(client=name, over=over.value, local_url=url, with_token=show_token)
    return ask(client_setup, given, ClientChange).to_wire()


def _remove(
    name: Name,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take this service's entry out of a client's settings, keeping a backup."""
    from computer_linker.cli.owner import ask
    from computer_linker.owner.client.remove import ClientRemoveInput, client_remove
    from computer_linker.service.clients.catalog import this_user
    from computer_linker.service.clients.change import ClientChange
    from computer_linker.service.clients.faults import CannotEdit
    from computer_linker.service.clients.setup import remove

    client = _client(name)
    try:
        if dry_run:
            answer = remove(client, this_user(), write=False)
        else:
            answer = ask(client_remove, ClientRemoveInput(client=name), ClientChange).to_wire()
    except CannotEdit as error:
        raise _left_alone(client, error) from None
    if as_json:
        print_json(answer)
    else:
        _show_change(answer, "has no entry for this service")


def _client(name: str) -> "Client":
    from computer_linker.service.clients.catalog import known_clients

    known = known_clients()
    if name not in known:
        hint = "computer-linker client chatgpt" if name == "chatgpt" else f"one of: {' '.join(known)}"
        raise CliError(f"there is no client {name[:40]!r} whose settings can be written", hint, exit_code=2)
    return known[name]


def _service() -> "Service":
    from computer_linker.service.clients.setup import Service

    home = state_home()
    return Service(current_config(home), home, (running_service(home) or {}).get("localUrl"))


def _left_alone(client: "Client", error: Exception) -> CliError:
    from computer_linker.service.clients.catalog import this_user

    return CliError(
        f"{client.file(this_user())} was left as it is: {error}", "computer-linker client setup prints the lines"
    )


def _show_change(answer: dict[str, Any], nothing: str) -> None:
    if not answer["needed"]:
        say(f"{answer['file']} {nothing}.")
        return
    say(answer["diff"])
    if answer["written"]:
        for changed in (answer, answer.get("permissions") or {}):
            if changed.get("backup"):
                note(f"The file as it was: {changed['backup']}")
        note(answer["after"])


def _bundle(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("computer-linker.mcpb"),
    as_json: AsJson = False,
) -> None:
    """Write an MCPB bundle for Claude Desktop; it is for this computer, for it starts the program that is installed here."""
    from computer_linker.service.clients.bundle import write_bundle

    write_bundle(file, state_home())
    if as_json:
        print_json({"file": str(file.absolute())})
    else:
        say(f"{file}: open it with Claude Desktop, on this computer")


def _chatgpt(
    what: Annotated[ForChatGpt, typer.Argument(help="The whole form, its address alone, or the form as JSON.")] = (
        ForChatGpt.connector
    ),
    show_token: ShowToken = False,
    as_json: AsJson = False,
) -> None:
    """Print what ChatGPT's connector form asks for."""
    from computer_linker.service.client_setup import chatgpt_connector
    from computer_linker.tunnels.record import read

    home = state_home()
    tunnel = read(home)
    tunnel_id = tunnel.tunnel_id if tunnel is not None and tunnel.is_open else None
    config = current_config(home)
    answer = chatgpt_connector(config, show_token=show_token, tunnel_id=tunnel_id)
    if what is ForChatGpt.url:
        _say_public_url(config, tunnel_id, as_json=as_json)
        return
    if as_json or what is ForChatGpt.manifest:
        print_json(answer)
        return
    for label, value in answer["fields"].items():
        say(f"{label}: {value}")
    for sentence in answer["notes"]:
        say(sentence)


def _say_public_url(config: "Config", tunnel_id: str | None, *, as_json: bool) -> None:
    if config.public_base_url is None and tunnel_id is None:
        raise CliError("there is no public address", "computer-linker start --tunnel cloudflare")
    url = f"{config.public_base_url.rstrip('/')}/mcp" if config.public_base_url is not None else None
    if as_json:
        print_json({"url": url, "tunnelId": tunnel_id})
    else:
        say(url or str(tunnel_id))


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
    say("To write a client's settings for it: computer-linker client setup NAME --write")
    say(f"First prompt: {answer['firstPrompt']}")


def _smoke(
    over: Annotated[
        Over, typer.Option("--over", help="Start the program, or connect to the running service.")
    ] = Over.stdio,
    public: Annotated[bool, typer.Option("--public", help="Connect to the public address of the config.")] = False,
    as_json: AsJson = False,
) -> None:
    """Connect as a client would, and make one read-only call in each folder scope."""
    from computer_linker.cli.self_test import answer_with, smoke
    from computer_linker.cli.smoke_http import smoke_http
    from computer_linker.service.client_setup import local_address

    home = state_home()
    config = current_config(home)
    if public:
        if config.public_base_url is None:
            raise CliError("there is no public address", "computer-linker config set publicBaseUrl https://...")
        answer_with(smoke_http(f"{config.public_base_url.rstrip('/')}/mcp", config, is_public=True), as_json=as_json)
    if over is Over.http:
        url = local_address(config, (running_service(home) or {}).get("localUrl"))
        answer_with(smoke_http(url, config, is_public=False), as_json=as_json)
    answer_with(smoke(home, config), as_json=as_json)
