"""The console script's commands, put together; every failure ends here as one line, a hint and an exit code."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from computer_linker.cli.output import CliError, fail
from computer_linker.client.socket_client import ServiceUnreachable
from computer_linker.errors import ConfigInvalid, InvalidRequest, LinkError
from computer_linker.system import os

if TYPE_CHECKING:
    import typer

PROGRAM = "computer-linker"
_COMPLETE = "_COMPUTER_LINKER_COMPLETE"

_FIRST = ("start", "setup", "status", "doctor", "scope", "client")
"""Commands in the short help: those a first run needs."""
_BY_HAND = {
    "start": "start", "expose": "start", "status": "status", "doctor": "doctor", "client": "client", "hub": "hub",
    "approvals": "approvals", "watch": "watch", "service": "service", "proof": "proof", "serve": "serve", "stdio": "serve",
    "op": "op", "history": "history", "process": "process", "self-test": "self_test", "completion": "completion",
}  # fmt: skip
"""Commands that are not derived, or not all of them, and the module that adds them."""

_SHORT_HELP = """Controlled use of this computer for any MCP client.

Begin with:           computer-linker start FOLDER

See it before:        computer-linker quickstart FOLDER

From elsewhere too:   computer-linker start FOLDER --tunnel cloudflare

More commands (op, history, pause, config, tunnel, self-test, ...):  computer-linker --help-all
"""
_OLDER = {
    ("workspace", "update"): ("scope", "edit"),
    ("workspace",): ("scope",),
    ("config", "token"): ("token",),
    ("client", "chatgpt", "profile"): ("profile",),
    ("client", "chatgpt", "smoke"): ("client", "smoke", "--public"),
}
"""Commands of earlier versions, and those that took their place; the first that fits is used."""
_INTERRUPTED = 130
_FULL_HELP = "Controlled use of this computer for any MCP client: every command."


def main(argv: list[str]) -> int:
    """Run one command line; 0 is done, 1 is refused or failed, 2 is a command line that cannot be understood."""
    if argv == ["--version"]:
        return _print_version()
    everything = "--help-all" in argv
    arguments = ["--help"] if everything else _present(argv) or ["--help"]
    try:
        # Shell completion gets every command, the hidden ones too.
        return _run(build(everything=everything or _COMPLETE in os.environ, first=arguments[0]), arguments)
    except CliError as error:
        fail(error.message, error.hint)
        return error.exit_code
    except LinkError as error:
        problems = error.problems if isinstance(error, ConfigInvalid) else ()
        fail(error.message, str(error.details.get("hint") or ""), [str(problem) for problem in problems])
        return 2 if isinstance(error, InvalidRequest) else 1
    except BrokenPipeError:
        # The reader closed the pipe (`| head`); this is not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ServiceUnreachable as error:
        fail(str(error), "computer-linker doctor says what is wrong")
        return 1
    except OSError as error:
        fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 1
    except KeyboardInterrupt:
        return _interrupted()


def _print_version() -> int:
    from computer_linker import __version__

    sys.stdout.write(__version__ + "\n")
    return 0


def _present(argv: list[str]) -> list[str]:
    """The command line with today's names of commands."""
    older = next((words for words in _OLDER if tuple(argv[: len(words)]) == words), None)
    return argv if older is None else [*_OLDER[older], *argv[len(older) :]]


def _interrupted() -> int:
    """Start a new line: the terminal has written ^C into the current one."""
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    return _INTERRUPTED


def build(*, everything: bool, first: str = "") -> "typer.Typer":
    """The command tree; commands beyond the first run are hidden unless all are requested.

    Only the commands of the `first` word are built if it names some: loading all of them is slow.
    """
    import typer

    app = typer.Typer(
        name=PROGRAM,
        help=_FULL_HELP if everything else _SHORT_HELP,
        add_completion=_COMPLETE in os.environ,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @app.callback(invoke_without_command=True)
    def root(
        version: bool = typer.Option(False, "--version", help="Print the version and end."),
        help_all: bool = typer.Option(False, "--help-all", help="Show every command."),
    ) -> None:
        if version:
            raise typer.Exit(_print_version())

    derived = import_module("computer_linker.cli.owner")
    first = "" if everything or not (first in _BY_HAND or derived.modules_of(first)) else first
    for name in [_BY_HAND[first]] if first in _BY_HAND else [] if first else dict.fromkeys(_BY_HAND.values()):
        register: Callable[[typer.Typer], None] = import_module(f"computer_linker.cli.{name}").register
        register(app)
    derived.register(app, first)
    _hide(app, everything=everything)
    return app


def _hide(app: "typer.Typer", *, everything: bool) -> None:
    for command in app.registered_commands:
        command.name = command.name or getattr(command.callback, "__name__", "")
        command.hidden = command.hidden or not (everything or command.name in _FIRST)
    for group in app.registered_groups:
        group.hidden = not (everything or group.name in _FIRST)
    app.registered_commands.sort(key=lambda command: _place(command.name))
    app.registered_groups.sort(key=lambda group: _place(group.name))


def _place(name: object) -> tuple[int, str]:
    """Sort key: commands of a first run first, then the rest by name."""
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), str(name))


def _run(app: "typer.Typer", arguments: list[str]) -> int:
    import typer

    # BadParameter's base is the usage error of the click version that typer bundles.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        result = app(arguments, prog_name=PROGRAM, standalone_mode=False)
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            # A group without a command shows its help, like the program itself.
            sys.stdout.write(_usage_text(error).rstrip() + "\n")
            return 0
        fail(_usage_text(error), f"{_command_path(error)} --help")
        return 2
    except typer.Abort:
        return _interrupted()
    if result == _INTERRUPTED:
        # Typer turns Ctrl-C into an exit code by itself.
        return _interrupted()
    return result if isinstance(result, int) else 0


def _usage_text(error: Exception) -> str:
    format_message = getattr(error, "format_message", None)
    return str(format_message()) if format_message is not None else str(error)


def _command_path(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return str(getattr(context, "command_path", None) or PROGRAM)
