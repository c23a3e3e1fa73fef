"""token: show or replace the owner's token for HTTP clients."""

from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say
from computer_linker.cli.places import state_home


def register(app: typer.Typer) -> None:
    """Add `token` and its commands."""
    group = typer.Typer(help="Show or replace the owner's token for HTTP clients.", rich_markup_mode=None)
    app.add_typer(group, name="token", no_args_is_help=True)
    group.command("show")(_show)
    group.command("rotate")(_rotate)


def _show(as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False) -> None:
    """Print the token. Whoever has it can use every scope over HTTP."""
    from computer_linker.auth.owner_token import is_digest
    from computer_linker.config.load import load

    kept = load(state_home()).owner_token
    if kept is not None and is_digest(kept):
        raise CliError(
            "only the token's digest is kept, so it cannot be shown", "computer-linker token rotate makes a new one"
        )
    if as_json:
        print_json({"ownerToken": kept})
    elif kept is None:
        raise CliError("there is no owner token", "computer-linker token rotate makes one")
    else:
        say(kept)


def _rotate(
    digest: Annotated[
        bool, typer.Option("--digest", help="Keep only a digest: the token is shown now and never again.")
    ] = False,
    show_token: Annotated[bool, typer.Option("--show-token", help="Print the new token.")] = False,
    revoke: Annotated[
        bool,
        typer.Option("--revoke", help="Also stop at once what OAuth clients have running. Their sessions end anyway."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Replace the token. The old one, and every OAuth session it consented to, stop working with the next request."""
    from computer_linker.auth.owner_token import digest_of, new_token
    from computer_linker.cli.sessions import ask
    from computer_linker.config.store import ensure, update

    home, token = state_home(), new_token()
    ensure(home, None)

    def edit(document: dict[str, Any]) -> None:
        document["ownerToken"] = digest_of(token) if digest else token

    update(home, edit)
    if revoke:
        ask("sessions.revoke", all=True)
    if as_json:
        print_json({"rotated": True, "ownerToken": token if show_token or digest else None})
    else:
        note("The old token no longer works.")
        if show_token or digest:
            say(token)
