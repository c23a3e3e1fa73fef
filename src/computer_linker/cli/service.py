"""service: have the system's service manager keep this program running."""

import sys
from typing import Annotated

import typer

from computer_linker.cli.output import note, print_json, say
from computer_linker.cli.places import current_config, state_home

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
Desktop = Annotated[bool, typer.Option("--desktop", help="Start with the desktop session, to see its screen.")]


def register(app: typer.Typer) -> None:
    """Add `service`, with the commands that are not derived."""
    group = typer.Typer(help="Keep this program running as a service of your user.", rich_markup_mode=None)
    app.add_typer(group, name="service", no_args_is_help=True)
    group.command("install")(_install)
    group.command("logs")(_logs)


def _install(
    desktop: Desktop = False,
    show: Annotated[bool, typer.Option("--print", help="Show what would be written, and write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Install and start it, or, after an update, install and start it again. Shows what it writes."""
    from computer_linker.cli.owner import ask
    from computer_linker.owner.service.install import InstallInput, service_install
    from computer_linker.service.install.keep import Installed, as_text, this_manager
    from computer_linker.service.install.plan import make_plan

    manager = this_manager()
    if show:
        text = as_text(manager.rendered(make_plan(state_home(), current_config(state_home()), with_desktop=desktop)))
        print_json({"file": str(manager.file()), "content": text}) if as_json else say(f"# {manager.file()}\n{text}")
        return
    if not manager.is_proven:
        note(f"Service mode with {manager.name} is unproven; see docs/how-to/run-as-a-service.md.")
    done = ask(service_install, InstallInput(desktop=desktop), Installed)
    if as_json:
        print_json(done.to_wire())
        return
    note(f"{done.file} ({done.change}):")
    note(done.content)
    say(f"Serving {done.local_url}. It starts again by itself; computer-linker service status shows how it is.")


def _logs(
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=100_000, help="How many of the last lines.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with the lines that come.")] = False,
    as_json: Json = False,
) -> None:
    """Show the service's log. It holds no contents and no secrets."""
    from computer_linker.policy.visible_text import escaped
    from computer_linker.service.install.keep import Log

    log = Log(state_home())
    found = log.last(lines)
    if as_json:
        print_json({"lines": found})
        return
    if not found and not follow:
        note("Nothing is logged yet. A service that was installed writes here; one in a terminal writes there.")
    for line in found:
        say(escaped(line))
    sys.stdout.flush()
    for line in log.follow() if follow else ():
        say(escaped(line))
        sys.stdout.flush()
