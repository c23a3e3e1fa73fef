"""sessions: the OAuth clients that hold a key of this computer, and how to take it back."""

from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import current_config, state_home

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]


def register(app: typer.Typer) -> None:
    """Add `sessions` and its commands."""
    group = typer.Typer(help="The OAuth clients that may use this computer.", rich_markup_mode=None)
    app.add_typer(group, name="sessions", no_args_is_help=True)
    group.command("list")(_list)
    group.command("revoke")(_revoke)


def _list(as_json: Json = False) -> None:
    """Who may use this computer over OAuth, what for, and until when."""
    sessions = ask("sessions.list")["sessions"]
    if as_json:
        print_json({"sessions": sessions})
    elif not sessions:
        note("No client holds a session.")
    else:
        rows = [(s["id"], s["client"], s["standing"], " ".join(s["scopes"]), s["lastUsedAt"]) for s in sessions]
        table(rows, ("session", "client", "", "may", "last used"))


def _revoke(
    session: Annotated[str | None, typer.Argument(help="The session, as `sessions list` names it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="End every session.")] = False,
    as_json: Json = False,
) -> None:
    """End a session: its tokens stop working with the next request."""
    if (session is None) is not everything:
        raise CliError("name one session, or --all", "computer-linker sessions list", 2)
    revoked = ask("sessions.revoke", id=session, all=everything)["revoked"]
    if as_json:
        print_json({"revoked": revoked})
    else:
        say(f"Ended {len(revoked)} session{'' if len(revoked) == 1 else 's'}.")


def ask(action: str, **request: Any) -> dict[str, Any]:
    """One `sessions.*` action, in the running service or, when none runs, in its files."""
    from computer_linker.client.socket_client import ask_service
    from computer_linker.service.sessions import control_without_service

    home = state_home()
    config = current_config(home)
    answer = ask_service(home, {"action": action, **request})
    if answer is None:
        answer = control_without_service(home, config, action, request)
    if not answer.get("ok"):
        raise CliError(str(answer.get("error", "the service did not answer")), "computer-linker sessions list")
    return answer
