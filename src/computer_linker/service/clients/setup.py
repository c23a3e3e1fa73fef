"""`client list`, `client setup NAME` and `client remove NAME`: present state, planned change, and result."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from computer_linker.auth.owner_token import is_digest
from computer_linker.config.schema import Config
from computer_linker.service.client_setup import (
    NAME,
    SPLIT,
    environment,
    local_address,
    program,
    wants_read_only_tool,
)
from computer_linker.service.clients.catalog import known_clients
from computer_linker.service.clients.faults import CannotEdit
from computer_linker.service.clients.form import Client, Connection, Http, Stdio, User
from computer_linker.service.clients.settings_file import Change, make, plan_removal, plan_rules, plan_setup, present_in
from computer_linker.transports.mcp.profiles import HEADER_SURFACE

SPLIT_SURFACE = "split"
Transport = Literal["stdio", "http"]
_APPROVE = "Approve it in the browser with the owner token: computer-linker token show"


@dataclass(frozen=True, slots=True)
class Service:
    """The service that clients are to be connected to."""

    config: Config
    home: Path
    local_url: str | None

    def connection(self, transport: Transport, *, with_token: bool) -> Connection:
        """How a client reaches it. A token is included only on request; OAuth needs none."""
        if transport == "stdio":
            return Stdio([*_whole_program(), "stdio"], environment(self.home))
        token = self.config.owner_token
        if not with_token or token is None:
            return Http(local_address(self.config, self.local_url), signs_in=token is not None)
        if is_digest(token):
            raise CannotEdit("only the token's digest is kept; connect over stdio or by OAuth, or rotate the token")
        return Http(local_address(self.config, self.local_url), token)


def list_clients(user: User) -> list[dict[str, Any]]:
    """Every known client: whether it is installed, and whether it has an entry for us."""
    return [_found(client, user) for client in known_clients().values()]


def set_up(client: Client, user: User, connection: Connection, *, write: bool) -> dict[str, Any]:
    """Return the entry, its file and the change; written on request. Raises CannotEdit, having written nothing."""
    entry = client.entry(_with_its_tools(client, connection))
    signs_in = isinstance(connection, Http) and connection.signs_in
    details = {"entry": entry, "after": f"{client.sign_in} {_APPROVE}" if signs_in else client.after}
    rules = None if client.rules is None else plan_rules(client.rules, user, present=True)
    return _done(client, plan_setup(client, user, entry), rules, _secret_of(connection), write=write) | details


def remove(client: Client, user: User, *, write: bool) -> dict[str, Any]:
    """Remove our entry."""
    rules = None if client.rules is None else plan_rules(client.rules, user, present=False)
    return _done(client, plan_removal(client, user), rules, None, write=write)


def _done(client: Client, change: Change, rules: Change | None, secret: str | None, *, write: bool) -> dict[str, Any]:
    """The planned changes, made on request: the rules first, for an entry without them would ask."""
    planned = [change] if rules is None else [change, rules]
    diff = "\n".join(filter(None, (each.diff(hide=secret) for each in planned)))
    backups = [make(each) if write else None for each in reversed(planned)]
    needed = any(each.is_needed for each in planned)
    done = {
        "client": client.name,
        "title": client.title,
        "file": str(change.file),
        "needed": needed,
        "written": write and needed,
        "backup": _named(backups[-1]),
        "diff": diff,
        "after": client.after,
    }
    if rules is not None and client.rules is not None:
        rows = {"file": str(rules.file), "rules": list(client.rules.allow), "backup": _named(backups[0])}
        done["permissions"] = rows
    return done


def _named(backup: Path | None) -> str | None:
    return None if backup is None else str(backup)


def _found(client: Client, user: User) -> dict[str, Any]:
    places = [place for name in client.programs if (place := shutil.which(name, path=user.environment.get("PATH")))]
    file = client.file(user)
    try:
        present, problem = present_in(client, user), None
    except (CannotEdit, OSError) as error:
        present, problem = [], str(error)
    return {
        "name": client.name,
        "title": client.title,
        "installed": bool(places) or file.exists(),
        "program": places[0] if places else None,
        "file": str(file),
        "connected": bool(present),
        "projects": [] if None in present else [project for project in present if project],
        "problem": problem,
    }


def _with_its_tools(client: Client, connection: Connection) -> Connection:
    """The connection, asking for a read-only tool where the client's person is then asked less."""
    if not wants_read_only_tool(client.title):
        return connection
    if isinstance(connection, Stdio):
        return replace(connection, environment={**connection.environment, **SPLIT})
    return replace(connection, headers={HEADER_SURFACE.decode().title(): SPLIT_SURFACE, **connection.headers})


def _whole_program() -> list[str]:
    """The program's full path: a client started from a desktop has another PATH than this terminal."""
    first, *rest = program()
    return [shutil.which(first) or first, *rest]


def _secret_of(connection: Connection) -> str | None:
    return connection.token if isinstance(connection, Http) else None


__all__ = ["NAME", "Service", "Transport", "list_clients", "remove", "set_up"]
