"""Writes docs/reference/cli.md from the commands themselves: `python -m computer_linker.cli.reference`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from computer_linker.cli.app import PROGRAM, build

PAGE = "cli.md"
_MADE = "<!-- Written by `make docs` from the commands; changes here are lost. -->\n\n"
_INTRO = """# Commands

Data goes to stdout and everything else to stderr. Exit code 0 is done, 1 is refused or failed, 2 is a command line that cannot be
understood. `COMPUTER_LINKER_HOME` names another state folder than `~/.computer-linker`.
"""


def page() -> str:
    """The whole page."""
    import typer

    # The command classes are click's, which typer bundles under another name.
    program: Any = typer.main.get_command(build(everything=True))
    return _MADE + _INTRO + "".join(_section(path, command) for path, command in _leaves([PROGRAM], program))


def main(argv: list[str]) -> int:
    """Write into the folder named, docs/reference when none is."""
    folder = Path(argv[0]) if argv else Path("docs/reference")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(page(), "utf-8")
    return 0


def _leaves(path: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, part in inner.items():
        yield from _leaves([*path, name], part)


def _section(path: list[str], command: Any) -> str:
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    words = [_word(parameter) for parameter in shown if parameter.param_type_name == "argument"]
    lines = [f"\n## {' '.join(path[1:])}\n", " ".join((command.help or "").split()), ""]
    lines += ["```text", " ".join([*path, "[OPTIONS]", *words]), "```", ""]
    rows = [_row(parameter) for parameter in shown]
    if rows:
        lines += ["| | |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _word(parameter: Any) -> str:
    name = str(parameter.name).upper()
    return name if parameter.required else f"[{name}]"


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = _word(parameter)
    else:
        name = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return f"| `{name}` | {' '.join((parameter.help or '').split())} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
