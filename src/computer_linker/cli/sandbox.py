"""sandbox: which kernel boundary holds around commands, proved by trying to cross it."""

from typing import Annotated, Any

import typer

from computer_linker.cli.output import print_json, say, table
from computer_linker.cli.places import state_home

_Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]


def register(app: typer.Typer) -> None:
    """Add `sandbox` and its command."""
    group = typer.Typer(help="The kernel boundary around commands.", rich_markup_mode=None)
    app.add_typer(group, name="sandbox", no_args_is_help=True)
    group.command("check")(_check)

    @group.callback()
    def root() -> None:
        """The kernel boundary around commands."""


def _check(as_json: _Json = False) -> None:
    """Try to cross the boundary: read, write, connect, signal and plant from inside. Exit code 1 when none holds.

    With `--json` on Linux, `held` also says of each boundary, and of none, what SECURITY.md's table says of it.
    """
    import anyio

    found: dict[str, Any] = anyio.run(_crossings, as_json)
    if as_json:
        print_json(found)
    else:
        rows = [
            (entry["kind"], *(_word(entry[name]) for name in _COLUMNS), entry["detail"])
            for entry in found["boundaries"]
        ]
        table(rows, ("boundary", "files", "network", "processes", "protected names", "how it was found out"))
        used = found["used"]
        say(f"commands use: {used}" if used != "none" else "commands use no boundary: install bubblewrap")
    if found["used"] == "none":
        raise typer.Exit(1)


_COLUMNS = ("files", "network", "processes", "protectedNames")


async def _crossings(is_whole: bool) -> dict[str, Any]:
    from computer_linker.computer.local.probe import this_computer
    from computer_linker.providers.sandbox.boundary import NO_BOUNDARY
    from computer_linker.providers.sandbox.measure import measured
    from computer_linker.providers.sandbox.sandbox import Sandbox, available_kinds

    computer = this_computer()
    # What is measured needs the launcher, which is Linux's.
    is_whole = is_whole and "bubblewrap" in available_kinds(computer)
    found: list[dict[str, Any]] = []
    home = state_home()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        for kind in available_kinds(computer):
            sandbox = Sandbox(computer, home, kinds=(kind,))
            boundary = await sandbox.probe()
            held = await measured(sandbox, boundary) if boundary.holds and is_whole else {}
            await sandbox.aclose()
            found.append(
                {
                    "kind": kind,
                    "holds": boundary.holds,
                    "files": boundary.files,
                    "network": boundary.network,
                    "processes": boundary.processes,
                    "protectedNames": boundary.protected,
                    "detail": boundary.detail,
                    "held": held,
                }
            )
        sandbox = Sandbox(computer, home, kinds=())
        without = await measured(sandbox, NO_BOUNDARY) if is_whole else {}
        await sandbox.aclose()
    finally:
        await computer.aclose()
    used = next((entry["kind"] for entry in found if entry["holds"]), "none")
    return {"used": used, "boundaries": found, "none": {"held": without}}


def _word(holds: bool) -> str:
    return "held" if holds else "open"
