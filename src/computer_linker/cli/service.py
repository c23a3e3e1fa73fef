"""service: have the system's service manager keep this program running."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from computer_linker.cli.output import note, print_json, say, table
from computer_linker.cli.places import current_config, state_home

if TYPE_CHECKING:
    from computer_linker.service.install.plan import Plan, ServiceManager

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
Desktop = Annotated[bool, typer.Option("--desktop", help="Start with the desktop session, to see its screen.")]


def register(app: typer.Typer) -> None:
    """Add `service` and its commands."""
    group = typer.Typer(help="Keep this program running as a service of your user.", rich_markup_mode=None)
    app.add_typer(group, name="service", no_args_is_help=True)
    group.command("install")(_install)
    group.command("status")(_status)
    group.command("logs")(_logs)
    group.command("uninstall")(_uninstall)


def _install(
    desktop: Desktop = False,
    show: Annotated[bool, typer.Option("--print", help="Show what would be written, and write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Install and start it, or, after an update, install and start it again. Shows what it writes."""
    from computer_linker.cli.owner import ask
    from computer_linker.owner.service.install import Installed, InstallInput, service_install
    from computer_linker.service.install.keep import as_text

    manager, plan = _made(desktop=desktop)
    if show:
        text = as_text(manager.rendered(plan))
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


def _status(as_json: Json = False) -> None:
    """Show whether it is installed, runs, and is what this program would install now."""
    from computer_linker.service.install.keep import status

    manager, plan = _made()
    answer = status(manager, plan)
    if as_json:
        print_json(answer)
    else:
        table([(name, str(value)) for name, value in _rows(answer) if value is not None])
    raise typer.Exit(0 if answer["installed"] and answer.get("pid") else 1)


def _logs(
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=100_000, help="How many of the last lines.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with the lines that come.")] = False,
    as_json: Json = False,
) -> None:
    """Show the service's log. It holds no contents and no secrets."""
    from computer_linker.policy.visible_text import escaped
    from computer_linker.service.install.logs import Log

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


def _uninstall(as_json: Json = False) -> None:
    """Stop and remove it. Config, history, sessions and approvals stay as they are."""
    from computer_linker.cli.owner import ask
    from computer_linker.owner.service.uninstall import Uninstalled, service_uninstall

    done = ask(service_uninstall, None, Uninstalled)
    if as_json:
        print_json(done.to_wire())
    else:
        note(f"Removed {done.file}." if done.removed else "No service was installed.")


def _made(*, desktop: bool = False) -> "tuple[ServiceManager, Plan]":
    from computer_linker.service.install.keep import this_manager
    from computer_linker.service.install.plan import make_plan

    home = state_home()
    return this_manager(), make_plan(home, current_config(home), with_desktop=desktop)


def _rows(answer: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("service", answer["state"]), ("address", answer["localUrl"]), ("manager", answer["manager"]),
        ("file", answer["file"]), ("process", answer.get("pid")), ("restarts", answer.get("restarts")),
        ("detail", answer.get("detail")), ("problem", answer.get("problem")),
        ("next", "computer-linker service install" if not answer["upToDate"] else None),
    ]  # fmt: skip
