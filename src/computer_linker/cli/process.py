"""process read: the output of a process that a client started, as it arrives."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from computer_linker.cli.output import note, print_json

if TYPE_CHECKING:
    from computer_linker.providers.processes.ring import Chunk

_Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_Id = Annotated[str, typer.Argument(metavar="PROCESS", help="The process id, or the beginning of it.")]
_WAIT_S = 20


def register(app: typer.Typer) -> None:
    """Add `process`, with the command that is not derived."""
    group = typer.Typer(help="Long-running processes that clients started.", rich_markup_mode=None)
    app.add_typer(group, name="process", no_args_is_help=True)
    group.command("read")(_read)


def _read(
    process: _Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the process ends.")] = False,
    cursor: Annotated[int, typer.Option(min=0, help="Begin here instead of at the oldest output kept.")] = 0,
    as_json: _Json = False,
) -> None:
    """Print what a process has printed; its standard error goes to standard error."""
    from computer_linker.cli.owner import ask
    from computer_linker.operations.command.read import ProcessOutput
    from computer_linker.owner.process.read import ReadInput, process_read

    while True:
        wanted = ReadInput(process=process, cursor=cursor, max_bytes=1_000_000, wait_seconds=_WAIT_S if follow else 0)
        read = ask(process_read, wanted, ProcessOutput)
        if read.dropped:
            note(f"({read.dropped} bytes of older output are no longer kept)")
        if as_json:
            print_json(read.to_wire())
        else:
            _print(read.chunks)
        is_at_end = read.cursor == cursor or not read.chunks
        cursor = read.cursor
        if is_at_end and (not follow or read.status != "running"):
            break
    if follow and read.exit_code is not None:
        note(f"({read.status}, exit code {read.exit_code})")


def _print(chunks: "list[Chunk]") -> None:
    for chunk in chunks:
        stream = sys.stderr if chunk["stream"] == "stderr" else sys.stdout
        stream.write(_shown(chunk["text"], stream.isatty()))
        stream.flush()


def _shown(text: str, is_terminal: bool) -> str:
    """Escape a process's control sequences on a terminal."""
    if not is_terminal:
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text.replace("\r\n", "\n")
    )
