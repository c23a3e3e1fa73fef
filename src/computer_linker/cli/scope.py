"""scope: list, add, edit, confirm and remove what clients may use."""

from pathlib import Path
from typing import Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, table
from computer_linker.cli.places import current_config, state_home
from computer_linker.cli.start import Codex, Shell, Write
from computer_linker.config.load import CONFIG_NAME

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
Id = Annotated[str, typer.Argument(metavar="SCOPE", help="The scope's id.", autocompletion=lambda: _ids())]


def register(app: typer.Typer) -> None:
    """Add `scope` and its commands."""
    group = typer.Typer(help="List, add, edit and remove what clients may use.", rich_markup_mode=None)
    app.add_typer(group, name="scope", no_args_is_help=True)
    group.command("list")(_list)
    group.command("add")(_add)
    group.command("edit")(_edit)
    group.command("remove")(_remove)
    group.command("confirm")(_confirm)


def _list(as_json: Json = False) -> None:
    """Show every scope with its folders and capabilities."""
    scopes = current_config(state_home()).scopes
    if as_json:
        print_json([scope.to_wire() for scope in scopes])
    elif not scopes:
        note("No scopes yet. Run: computer-linker scope add FOLDER")
    else:
        rows = [(s.id, s.type, " ".join(s.roots), " ".join(s.capabilities)) for s in scopes]
        table(rows, ("scope", "type", "roots", "capabilities"))


def _add(
    folder: Annotated[Path | None, typer.Argument(help="The folder to expose.")] = None,
    scope_id: Annotated[
        str | None, typer.Option("--id", help="Its id; made from the folder's name if left out.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    write: Write = None,
    shell: Shell = False,
    codex: Codex = False,
    computer: Annotated[bool, typer.Option("--computer", help="The screen and desktop instead of a folder.")] = False,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="CAPABILITY", help="A further capability, such as git:write.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Expose a folder: reading and history, writing unless --read-only, programs only when asked for.

    With --computer: the screen, to look at; more with --allow, and a person is asked before every act.
    """
    from computer_linker.service.setup import Wishes, checked_folder, computer_scope, folder_scope

    if computer == (folder is not None):
        raise CliError("name a folder, or say --computer", "computer-linker scope add --help", 2)
    home = state_home()
    root = None if folder is None else checked_folder(folder, home)
    _first_config(home)
    wishes = Wishes(folder, write, shell, codex, scope_id=scope_id, name=name)
    added: list[dict[str, Any]] = []

    def edit(document: dict[str, Any]) -> None:
        scope = computer_scope(document, wishes) if root is None else folder_scope(document, root, wishes)
        scope["capabilities"] = list(dict.fromkeys([*scope["capabilities"], *(allow or [])]))
        added.append(scope)
        document["scopes"] = [*document.get("scopes", []), scope]

    _store(home, edit)
    _pin(home, added[0]["id"])
    _tell(added[0], f"Added scope {added[0]['id']} for {root or 'the screen and desktop'}.", as_json=as_json)


def _edit(
    scope_id: Id,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="CAPABILITY", help="A capability to give, such as fs:write.")
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(metavar="CAPABILITY", help="A capability to take away.")] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    root: Annotated[
        list[Path] | None, typer.Option(metavar="FOLDER", help="The folders, in place of the present ones.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME=JSON", help="A policy field; NAME= takes it away.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change one scope. It holds from the next call on; the service need not be restarted."""
    from computer_linker.service.setup import checked_folder

    home = state_home()
    roots = [checked_folder(path, home) for path in root or []]
    changes = dict(_pair(text) for text in policy or [])
    changed: list[dict[str, Any]] = []

    def edit(document: dict[str, Any]) -> None:
        scope = _find(document, scope_id)
        kept = [capability for capability in scope.get("capabilities", []) if capability not in (deny or [])]
        scope["capabilities"] = list(dict.fromkeys([*kept, *(allow or [])]))
        scope.update({"roots": roots} if roots else {}, **({"name": name} if name is not None else {}))
        if changes:
            scope["policy"] = _merged(scope.get("policy", {}), changes)
        changed.append(scope)

    _store(home, edit)
    if roots:
        _pin(home, scope_id)
    _tell(changed[0], f"Changed scope {scope_id}.", as_json=as_json)


def _remove(scope_id: Id, as_json: Json = False) -> None:
    """Remove a scope. Its files stay as they are; clients can no longer use it."""
    removed: list[dict[str, Any]] = []

    def edit(document: dict[str, Any]) -> None:
        removed.append(_find(document, scope_id))
        document["scopes"].remove(removed[0])

    _store(state_home(), edit)
    _tell(removed[0], f"Removed scope {scope_id}. Its files are as they were.", as_json=as_json)


def _confirm(scope_id: Id, as_json: Json = False) -> None:
    """Take a scope's folders as they are now, after one was moved, replaced or became a link.

    Until then such a folder is not opened: any program that can write beside it could have replaced it.
    """
    home = state_home()
    found = _pin(home, scope_id)
    # The service reads its config again when the file changed, and with it which folders were confirmed.
    (home / CONFIG_NAME).touch()
    if as_json:
        print_json({"id": scope_id, "roots": found})
    for root, real in found.items() if not as_json else ():
        note(f"Scope {scope_id}: {root} is {'this folder' if root == real else real} from now on.")


def _pin(home: Path, scope_id: str) -> dict[str, str]:
    """Record which folders the scope's roots are now."""
    from computer_linker.config.load import load
    from computer_linker.config.roots import confirm

    scope = load(home).scope(scope_id)
    if scope is None:
        raise CliError(f"there is no scope {scope_id}", "computer-linker scope list shows them")
    return {root: identity.real for root, identity in confirm(home, scope).items()}


def _store(home: Path, edit: Any) -> None:
    from computer_linker.config.runtime import effective
    from computer_linker.config.store import update
    from computer_linker.service.settings import check

    def checked(config: Any) -> list[str]:
        effective(config, home)
        return check(config)

    update(home, edit, checked)


def _first_config(home: Path) -> None:
    from computer_linker.auth.owner_token import new_token
    from computer_linker.config.store import ensure

    if ensure(home, new_token()):
        note("Made a config and an owner token.")


def _find(document: dict[str, Any], scope_id: str) -> dict[str, Any]:
    for scope in document.get("scopes", []):
        if scope["id"] == scope_id:
            found: dict[str, Any] = scope
            return found
    raise CliError(f"there is no scope {scope_id}", "computer-linker scope list shows them")


def _pair(text: str) -> tuple[str, Any]:
    from computer_linker.registry.cli_options import read_value

    name, separator, value = text.partition("=")
    if not separator:
        raise CliError(f"{text} is not name=value", "for example: --policy network=false --policy sandbox=required", 2)
    return name, None if value == "" else read_value(value)


def _merged(policy: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**policy, **changes}.items() if value is not None}


def _tell(scope: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(scope)
    else:
        note(sentence)


def _ids() -> list[str]:
    return [scope.id for scope in current_config(state_home()).scopes]
