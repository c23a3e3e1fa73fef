"""process: the long-running processes that clients started."""

import sys
from typing import Annotated, Any

import typer

from computer_linker.cli.ask import answer_of
from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import current_config, running_service, state_home

_Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_Id = Annotated[str, typer.Argument(metavar="PROCESS", help="The process id, or the beginning of it.")]
_WAIT_S = 20


def register(app: typer.Typer) -> None:
    """Add `process` and its commands."""
    group = typer.Typer(help="Long-running processes that clients started.", rich_markup_mode=None)
    app.add_typer(group, name="process", no_args_is_help=True)
    group.command("list")(_list)
    group.command("read")(_read)
    group.command("stop")(_stop)


def _list(as_json: _Json = False) -> None:
    """List every process, in every scope, with what became of it."""
    found = _processes()
    if as_json:
        print_json({"processes": found})
    elif not found:
        say("No processes.")
    else:
        rows = [
            (entry["processId"], entry["scope"], entry["status"], _ended(entry), _ports(entry), _label(entry))
            for entry in found
        ]
        table(rows, ("process", "scope", "status", "exit", "ports", "command"))


def _read(
    process: _Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the process ends.")] = False,
    cursor: Annotated[int, typer.Option(min=0, help="Begin here instead of at the oldest output kept.")] = 0,
    as_json: _Json = False,
) -> None:
    """Print what a process has printed; its standard error goes to standard error."""
    entry = _find(process)
    while True:
        options = {"cursor": cursor, "maxBytes": 1_000_000, "waitSeconds": _WAIT_S if follow else 0}
        read = _call(entry["scope"], "command.read", entry["processId"], options)
        if read["dropped"]:
            note(f"({read['dropped']} bytes of older output are no longer kept)")
        if as_json:
            print_json(read)
        else:
            _print(read["chunks"])
        is_at_end = read["cursor"] == cursor or not read["chunks"]
        cursor = read["cursor"]
        if is_at_end and (not follow or read["status"] != "running"):
            break
    if follow and read["exitCode"] is not None:
        note(f"({read['status']}, exit code {read['exitCode']})")


def _stop(
    process: _Id,
    signal: Annotated[str, typer.Option(help="term, int, hup, quit or kill: how to ask it first.")] = "term",
    grace_seconds: Annotated[float, typer.Option(min=0, max=40, help="Then it is killed.")] = 5,
    as_json: _Json = False,
) -> None:
    """Stop a process and everything it started."""
    entry = _find(process)
    options = {"signal": signal, "graceSeconds": grace_seconds}
    told = _call(entry["scope"], "command.stop", entry["processId"], options)
    print_json(told) if as_json else say(f"{entry['processId']} {told['status']}, exit code {told['exitCode']}")


def _processes() -> list[dict[str, Any]]:
    home = state_home()
    if running_service(home) is None:
        return _remembered()
    found: list[dict[str, Any]] = []
    for scope in current_config(home).scopes:
        if scope.type == "folder" and "process:manage" in scope.granted:
            listed = _call(scope.id, "command.list", None, {})["processes"]
            found += [{"scope": scope.id, **entry} for entry in listed]
    return found


def _remembered() -> list[dict[str, Any]]:
    """What the last service left: no service runs, so nothing does."""
    from computer_linker.providers.processes.records import Records

    folder = state_home() / "processes"
    return [record.to_wire() for record in Records(folder).load()] if folder.is_dir() else []


def _find(process: str) -> dict[str, Any]:
    fitting = [entry for entry in _processes() if entry["processId"].startswith(process)]
    if len(fitting) != 1:
        which = "no process" if not fitting else "more than one process"
        raise CliError(f"{which} begins with {process!r}", "computer-linker process list shows them")
    return fitting[0]


def _call(scope: str, op: str, target: str | None, options: dict[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = {"scope": scope, "op": op, "options": options}
    return answer_of(request if target is None else request | {"target": target})


def _print(chunks: list[dict[str, str]]) -> None:
    for chunk in chunks:
        stream = sys.stderr if chunk["stream"] == "stderr" else sys.stdout
        stream.write(_shown(chunk["text"], stream.isatty()))
        stream.flush()


def _shown(text: str, is_terminal: bool) -> str:
    """On a terminal, a process's control sequences are shown rather than obeyed."""
    if not is_terminal:
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text.replace("\r\n", "\n")
    )


def _ended(entry: dict[str, Any]) -> str:
    return "" if entry["exitCode"] is None else str(entry["signal"] or entry["exitCode"])


def _ports(entry: dict[str, Any]) -> str:
    return ", ".join(map(str, entry.get("ports", [])))


def _label(entry: dict[str, Any]) -> str:
    return str(entry["name"] or entry["commandPreview"])
