"""Another computer's desktop and files from a program of your own.

On that computer, once:

    computer-linker peer listen --host 0.0.0.0
    computer-linker peer pair --allow desk --allow app

Here, with the address and the code it shows; the name it prints is what the other two take:

    python examples/remote_computer.py pair 192.168.1.20:3940 CODE
    python examples/remote_computer.py type laptop "Good morning"
    python examples/remote_computer.py read laptop app notes.txt
"""

import argparse
import sys
from pathlib import Path

import anyio

from computer_linker.errors import LinkError
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.tools import ToolContext, toolbox
from computer_linker.transports.peer.remote import pair, remote_computer


async def type_text(home: Path, name: str, text: str) -> None:
    """Type where the focus is over there, with the same tools as on this computer."""
    async with remote_computer(name, home=home) as computer:
        tools, ctx = toolbox(), ToolContext("example", computer)
        try:
            shot = await tools["screenshot"].run({}, ctx)
            print(shot.error or shot.title)
            typed = await tools["keyboard"].run({"action": "type", "text": text}, ctx)
            print(typed.error or f"typed: {typed.metadata['effect']}")
        finally:
            await ctx.aclose()


async def read_file(home: Path, name: str, scope: str, path: str) -> None:
    """Print a file of one of its folder scopes. The root of a path over there is the scope's id."""
    async with remote_computer(name, home=home, scope=scope) as computer:
        place = RootedPath(scope, tuple(path.split("/")), PathRules())
        content, _ = await computer.files.read_whole(place, 1_000_000)
        print(content.decode("utf-8", errors="replace"), end="")


async def main(words: argparse.Namespace) -> int:
    try:
        match words.do:
            case "pair":
                print(await pair(words.address, words.code, home=words.home))
            case "type":
                await type_text(words.home, words.name, words.text)
            case "read":
                await read_file(words.home, words.name, words.scope, words.path)
    except LinkError as error:
        print(f"{error.code}: {error.message}", file=sys.stderr)
        return 1
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Use another computer from a program of your own.")
    parser.add_argument("--home", type=Path, default=Path.home() / ".remote-computer-example")
    commands = parser.add_subparsers(dest="do", required=True)
    for name, arguments in (
        ("pair", ("address", "code")),
        ("type", ("name", "text")),
        ("read", ("name", "scope", "path")),
    ):
        command = commands.add_parser(name)
        for argument in arguments:
            command.add_argument(argument)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(anyio.run(main, parsed()))
