"""client: connect, disconnect and test clients."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from computer_linker.cli.output import CliError, note, print_json, say
from computer_linker.cli.places import current_config, state_home
from computer_linker.client.socket_client import running_url

if TYPE_CHECKING:
    from computer_linker.config.schema import Config
    from computer_linker.service.client_setup import ClientLines
    from computer_linker.service.clients.setup import ClientChange


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
    """Add `client`, with the commands that are not derived."""
    group = typer.Typer(help="Connect an MCP client, and check that it works.", rich_markup_mode=None)
    app.add_typer(group, name="client", no_args_is_help=True)
    group.command("setup")(_setup)
    group.command("remove")(_remove)
    group.command("bundle")(_bundle)
    group.command("chatgpt")(_chatgpt)
    group.command("smoke")(_smoke)


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
    from computer_linker.service.client_setup import client_lines

    home = state_home()
    answer = client_lines(current_config(home), home, running_url(home), show_token=show_token)
    if as_json:
        print_json(answer.to_wire())
        return
    _show(answer)
    if details:
        say(f"\nTools: {' '.join(answer.tools)}\n\nInstructions to paste into a client:\n\n{answer.agent_instructions}")


def _set_up_one(name: str, over: Over, *, write: bool, show_token: bool, as_json: bool) -> None:
    from computer_linker.cli.owner import ask
    from computer_linker.owner.client.setup import ClientSetupInput, client_setup
    from computer_linker.service.clients.catalog import this_user
    from computer_linker.service.clients.setup import ClientChange, Service, client_named, set_up

    if write:
        given = ClientSetupInput(client=name, over=over.value, with_token=show_token)
        answer = ask(client_setup, given, ClientChange)
    else:
        home = state_home()
        service = Service(current_config(home), home, running_url(home))
        client = client_named(name)
        answer = set_up(client, this_user(), service, over.value, with_token=show_token, write=False)
    if as_json:
        print_json(answer.to_wire())
        return
    _show_change(answer, "has this entry already")
    if answer.needed and not write:
        note(f"Nothing was written. Write it with: computer-linker client setup {name} --write")


def _remove(
    name: Name,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take this service's entry out of a client's settings, keeping a backup."""
    from computer_linker.cli.owner import ask
    from computer_linker.owner.client.remove import ClientRemoveInput, client_remove
    from computer_linker.service.clients.catalog import this_user
    from computer_linker.service.clients.setup import ClientChange, client_named, remove

    if dry_run:
        answer = remove(client_named(name), this_user(), write=False)
    else:
        answer = ask(client_remove, ClientRemoveInput(client=name), ClientChange)
    if as_json:
        print_json(answer.to_wire())
    else:
        _show_change(answer, "has no entry for this service")


def _show_change(answer: "ClientChange", nothing: str) -> None:
    if not answer.needed:
        say(f"{answer.file} {nothing}.")
        return
    say(answer.diff)
    if answer.written:
        for changed in (answer, answer.permissions):
            if changed is not None and changed.backup is not None:
                note(f"The file as it was: {changed.backup}")
        note(answer.after)


def _bundle(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("computer-linker.mcpb"),
    as_json: AsJson = False,
) -> None:
    """Write an MCPB bundle for Claude Desktop; it is for this computer, for it starts the program that is installed here."""
    from computer_linker.service.clients.setup import write_bundle

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
        print_json(answer.to_wire())
        return
    for label, value in answer.fields.items():
        say(f"{label}: {value}")
    for sentence in answer.notes:
        say(sentence)


def _say_public_url(config: "Config", tunnel_id: str | None, *, as_json: bool) -> None:
    from computer_linker.service.client_setup import public_address

    url = public_address(config)
    if url is None and tunnel_id is None:
        raise CliError("there is no public address", "computer-linker start --tunnel cloudflare")
    if as_json:
        print_json({"url": url, "tunnelId": tunnel_id})
    else:
        say(url or str(tunnel_id))


def _show(answer: "ClientLines") -> None:
    say("Over stdio (no token needed; the service starts by itself):")
    for name, line in answer.stdio.lines.items():
        say(f"  {name}: {line}")
    for name, settings in (("cursor", answer.cursor), ("vscode", answer.vscode)):
        say(f"  {name}: put into {settings.file}: {json.dumps(settings.content)}")
    http = answer.http
    say(f"Over HTTP ({'running' if http.running else 'start it with: computer-linker start'}): {http.local_url}")
    for name, line in http.lines.items():
        say(f"  {name}: {line}")
    say("To write a client's settings for it: computer-linker client setup NAME --write")
    say(f"First prompt: {answer.first_prompt}")


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
    from computer_linker.service.client_setup import local_address, public_address

    home = state_home()
    config = current_config(home)
    if public:
        address = public_address(config)
        if address is None:
            raise CliError("there is no public address", "computer-linker config set publicBaseUrl https://...")
        answer_with(smoke_http(address, config, is_public=True), as_json=as_json)
    if over is Over.http:
        url = local_address(config, running_url(home))
        answer_with(smoke_http(url, config, is_public=False), as_json=as_json)
    answer_with(smoke(home, config), as_json=as_json)
