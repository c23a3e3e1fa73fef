"""peer and computers: pair this computer with others, and see which can be used."""

from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import state_home

AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]


def register(app: typer.Typer) -> None:
    """Add `peer` and `computers`."""
    peer = typer.Typer(help="Other computers: listen for them, pair, list and remove.", no_args_is_help=True)
    app.add_typer(peer, name="peer")
    peer.command("listen")(_listen)
    peer.command("pair")(_pair)
    peer.command("list")(_list)
    peer.command("remove")(_remove)
    peer.command("accept")(_accept)
    app.command("computers")(_list)


def _listen(
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for every network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port.")] = 3940,
    as_json: AsJson = False,
) -> None:
    """Let paired computers reach this one. Nobody else gets past the handshake."""
    answer = _ask("peer.listen", host=host, port=port)
    if as_json:
        print_json(answer)
    else:
        say(f"Listening for paired computers on {answer['listening']}.")


def _pair(
    address: Annotated[
        str | None, typer.Argument(help="HOST:PORT of the other computer; left out, this one shows a code.")
    ] = None,
    code: Annotated[str | None, typer.Argument(help="The code the other computer shows.")] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="RIGHT", help="What the other may use here: SCOPE or SCOPE:CAPABILITY.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What to call the other computer here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Pair two computers: show a code on the one, type it on the other."""
    if address is None:
        answer = _ask("peer.invite", grants=allow or [])
        if as_json:
            print_json(answer)
            return
        say(answer["code"])
        note(
            f"Within five minutes, on the other computer: computer-linker peer pair {answer['listening']} {answer['code']}"
        )
        given = ", ".join(answer["grants"]) or "nothing (give it something with --allow SCOPE)"
        note(f"It may then use here: {given}")
        return
    if code is None:
        raise CliError("a code is needed", "on the other computer: computer-linker peer pair", 2)
    answer = _ask("peer.join", address=address, code=code, name=name)
    if as_json:
        print_json(answer)
    else:
        say(f"Paired with {answer['name']}. Use it as a scope: {answer['name']}/SCOPE")


def _list(as_json: AsJson = False) -> None:
    """The computers this one is paired with."""
    answer = _ask("peer.list")
    if as_json:
        print_json(answer)
    elif not answer["computers"]:
        note("No other computer is paired with this one. computer-linker peer pair shows a code.")
    else:
        table([[item["name"], item["address"] or "calls us", item["machineId"]] for item in answer["computers"]])


def _remove(name: Annotated[str, typer.Argument(help="The computer's name here.")], as_json: AsJson = False) -> None:
    """Forget a computer: its key opens nothing here from now on."""
    answer = _ask("peer.remove", name=name)
    if as_json:
        print_json(answer)
    else:
        say(f"{answer['removed']} is no longer paired with this computer.")


def _accept(name: Annotated[str, typer.Argument(help="The computer's name here.")], as_json: AsJson = False) -> None:
    """Accept what a computer says of itself after it changed: until then it is refused."""
    answer = _ask("peer.accept", name=name)
    if as_json:
        print_json(answer)
    else:
        say(f"{answer['accepted']} is accepted as it is now.")


def _ask(action: str, **request: Any) -> dict[str, Any]:
    from computer_linker.client.socket_client import ask_or_start

    answer = ask_or_start(state_home(), {"action": action, **request})
    if not answer.get("ok"):
        raise CliError(str(answer.get("error", "the service did not answer")))
    return answer
