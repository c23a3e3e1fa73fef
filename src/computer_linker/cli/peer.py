"""peer and computers: pair this computer with others, and see which can be used."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import control, state_home

_COPY_S = 86_400.0
_COPY_HINTS = {
    "already_exists": "--overwrite replaces it",
    "not_found": "--parents makes the folders that are missing at the destination",
}
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
    peer.command("copy")(_copy)
    app.command("computers")(_list)


def _listen(
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for every network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port.")] = 3940,
    as_json: AsJson = False,
) -> None:
    """Let paired computers reach this one. Nobody else gets past the handshake."""
    answer = control("peer.listen", host=host, port=port)
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
        answer = control("peer.invite", grants=allow or [])
        if as_json:
            print_json(answer)
            return
        say(answer["code"])
        note(
            f"Within five minutes, on the other computer: computer-linker peer pair {answer['address']} {answer['code']}"
        )
        given = ", ".join(answer["grants"]) or "nothing (give it something with --allow SCOPE)"
        note(f"It may then use here: {given}")
        return
    if code is None:
        raise CliError("a code is needed", "on the other computer: computer-linker peer pair", 2)
    if allow:
        raise CliError(
            "what may be used here is said where the code is shown", "computer-linker peer pair --allow RIGHT", 2
        )
    answer = control("peer.join", address=address, code=code, name=name)
    if as_json:
        print_json(answer)
    else:
        say(f"Paired with {answer['name']}. Use it as a scope: {answer['name']}/SCOPE")


def _list(as_json: AsJson = False) -> None:
    """The computers this one is paired with."""
    answer = control("peer.list")
    if as_json:
        print_json(answer)
    elif not answer["computers"]:
        note("No other computer is paired with this one. computer-linker peer pair shows a code.")
    else:
        rows = []
        for item in answer["computers"]:
            scopes = ", ".join(scope["id"] for scope in item.get("scopes", [])) or "nothing"
            given = ", ".join(item.get("mayUseHere", [])) or "nothing"
            rows.append([item["name"], item["address"] or "calls us", scopes, given, item["machineId"]])
        table(rows, ("computer", "address", "gives us", "may use here", "id"))


def _remove(name: Annotated[str, typer.Argument(help="The computer's name here.")], as_json: AsJson = False) -> None:
    """Forget a computer: its key opens nothing here from now on."""
    answer = control("peer.remove", name=name)
    if as_json:
        print_json(answer)
    else:
        say(f"{answer['removed']} is no longer paired with this computer.")


def _accept(
    name: Annotated[str, typer.Argument(help="The computer's name here.")],
    word: Annotated[str | None, typer.Argument(help="The word that was shown beside what changed.")] = None,
    as_json: AsJson = False,
) -> None:
    """See what a computer says of itself since it changed, and accept exactly that: until then it is refused."""
    answer = control("peer.accept", name=name, word=word)
    if as_json:
        print_json(answer)
    elif answer["accepted"]:
        say(f"{answer['computer']} is accepted as it is now.")
    else:
        for change in answer["changes"] or ["it is again what was accepted"]:
            say(f"{answer['computer']}: {change}")
        note(f"If that is right: computer-linker peer accept {answer['computer']} {answer['word']}")


def _copy(
    source: Annotated[str, typer.Argument(help="SCOPE:PATH here, or COMPUTER/SCOPE:PATH.")],
    destination: Annotated[str, typer.Argument(help="SCOPE:PATH here, or COMPUTER/SCOPE:PATH.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    parents: Annotated[bool, typer.Option("--parents", help="Make the folders above it that are missing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Copy a file to or from another computer, and show how far it is."""
    from computer_linker.client import Client, ClientFailed
    from computer_linker.errors import LinkError

    (from_scope, path), (to_scope, wanted) = _place(source), _place(destination)
    input = {"destination": wanted}
    if "/" in to_scope:
        scope, input["destinationScope"] = from_scope, to_scope
    elif "/" in from_scope:
        scope, input["sourceScope"] = to_scope, from_scope
    else:
        raise CliError("one side is another computer: COMPUTER/SCOPE:PATH", "within one scope: op file.copy", 2)
    options = {"overwrite": overwrite, "createParents": parents}
    try:
        with _progress() as report, Client.over_socket(state_home()) as linker:
            answer = linker.call(scope, "file.copy", path, input, options, report=report, deadline_s=_COPY_S)
    except LinkError as error:
        raise CliError(f"{error.code}: {error.message}", _COPY_HINTS.get(error.code, "")) from None
    except ClientFailed as error:
        raise CliError(str(error)) from None
    if as_json:
        print_json(answer.data)
    else:
        say(f"{answer.data['from']} is now {answer.data['to']}")


def _place(word: str) -> tuple[str, str]:
    scope, colon, path = word.partition(":")
    if not colon or not scope or not path:
        raise CliError(f"{word} is no place", "write SCOPE:PATH, or COMPUTER/SCOPE:PATH", 2)
    return scope, path


@contextmanager
def _progress() -> Iterator[Callable[[str, float, float | None], None] | None]:
    """A line that is written over, where somebody looks at it, and ended when the copy is."""
    if not sys.stderr.isatty():
        yield None
        return
    told = False

    def report(_message: str, done: float, total: float | None) -> None:
        nonlocal told
        told = True
        part = f" of {total / 1e6:.0f} MB ({done / total:.0%})" if total else " MB"
        sys.stderr.write(f"\r{done / 1e6:.0f}{part} ")
        sys.stderr.flush()

    try:
        yield report
    finally:
        if told:
            sys.stderr.write("\n")
