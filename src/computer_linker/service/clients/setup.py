"""`client list`, `client setup NAME` and `client remove NAME`: present state, planned change, and result."""

import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from computer_linker import __version__
from computer_linker.auth.owner_token import is_digest
from computer_linker.config.schema import Config
from computer_linker.errors import ExecutionFailed, InvalidRequest
from computer_linker.model.base import Model
from computer_linker.service.client_setup import (
    NAME,
    SPLIT,
    environment,
    local_address,
    program,
    wants_read_only_tool,
)
from computer_linker.service.clients.catalog import known_clients
from computer_linker.service.clients.form import Client, Connection, Http, Stdio, User
from computer_linker.service.clients.jsonc import CannotEdit
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


class RulesChange(Model):
    """The change of the client's own permission rules, in another file of it."""

    file: str
    rules: list[str]
    backup: str | None


class ClientChange(Model):
    """One change of a client's settings: planned, or made when `written`."""

    client: str
    title: str
    file: str
    needed: bool
    written: bool
    backup: str | None
    diff: str
    after: str
    entry: dict[str, Any] | None = None
    permissions: RulesChange | None = None


class FoundClient(Model):
    """A known client: whether it is installed, and whether it has an entry for this service."""

    name: str
    title: str
    installed: bool
    program: str | None
    file: str
    connected: bool
    projects: list[str]
    problem: str | None


def client_named(name: str) -> Client:
    """Return the client of this name. Raises InvalidRequest."""
    known = known_clients()
    if name not in known:
        hint = "computer-linker client chatgpt" if name == "chatgpt" else f"one of: {' '.join(known)}"
        raise InvalidRequest(f"there is no client {name[:40]!r} whose settings can be written", hint=hint)
    return known[name]


def list_clients(user: User) -> list[FoundClient]:
    """Every known client: whether it is installed, and whether it has an entry for us."""
    return [_found(client, user) for client in known_clients().values()]


def set_up(
    client: Client, user: User, service: Service, over: Transport, *, with_token: bool, write: bool
) -> ClientChange:
    """Return the entry, its file and the change; written on request. Raises ExecutionFailed, having written nothing."""
    with _left_alone(client, user):
        connection = service.connection(over, with_token=with_token)
        entry = client.entry(_with_its_tools(client, connection))
        rules = None if client.rules is None else plan_rules(client.rules, user, present=True)
        done = _done(client, plan_setup(client, user, entry), rules, _secret_of(connection), write=write)
    signs_in = isinstance(connection, Http) and connection.signs_in
    after = f"{client.sign_in} {_APPROVE}" if signs_in else client.after
    return done.model_copy(update={"entry": entry, "after": after})


def remove(client: Client, user: User, *, write: bool) -> ClientChange:
    """Remove our entry. Raises ExecutionFailed, having written nothing."""
    with _left_alone(client, user):
        rules = None if client.rules is None else plan_rules(client.rules, user, present=False)
        done = _done(client, plan_removal(client, user), rules, None, write=write)
    return done.model_copy(update={"after": f"{client.title} is without it from its next start on."})


@contextmanager
def _left_alone(client: Client, user: User) -> Iterator[None]:
    try:
        yield
    except CannotEdit as error:
        raise ExecutionFailed(
            f"{client.file(user)} was left as it is: {error}", hint="computer-linker client setup prints the lines"
        ) from error


def _done(client: Client, change: Change, rules: Change | None, secret: str | None, *, write: bool) -> ClientChange:
    """The planned changes, made on request: the rules first, for an entry without them would ask."""
    planned = [change] if rules is None else [change, rules]
    diff = "\n".join(filter(None, (each.diff(hide=secret) for each in planned)))
    made = [make(each) if write else None for each in reversed(planned)]
    backups = [None if backup is None else str(backup) for backup in made]
    needed = any(each.is_needed for each in planned)
    permissions = None
    if rules is not None and client.rules is not None:
        permissions = RulesChange(file=str(rules.file), rules=list(client.rules.allow), backup=backups[0])
    return ClientChange(
        client=client.name,
        title=client.title,
        file=str(change.file),
        needed=needed,
        written=write and needed,
        backup=backups[-1],
        diff=diff,
        after=client.after,
        permissions=permissions,
    )


def _found(client: Client, user: User) -> FoundClient:
    places = [place for name in client.programs if (place := shutil.which(name, path=user.environment.get("PATH")))]
    file = client.file(user)
    try:
        present, problem = present_in(client, user), None
    except (CannotEdit, OSError) as error:
        present, problem = [], str(error)
    return FoundClient(
        name=client.name,
        title=client.title,
        installed=bool(places) or file.exists(),
        program=places[0] if places else None,
        file=str(file),
        connected=bool(present),
        projects=[] if None in present else [project for project in present if project],
        problem=problem,
    )


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


# The MCPB bundle for Claude Desktop: a manifest and a start file that runs the program installed on this computer.

_START = '''"""Started by the client that opened the bundle; speaks MCP on stdin and stdout."""

import sys

from computer_linker.__main__ import main

sys.argv = ["computer-linker", "stdio"]
sys.exit(main())
'''
_TOOLS = {
    "get_computer_info": "What this computer is, which scopes may be used, and whether it is ready.",
    "computer_operation": "Run one operation in a scope.",
    "get_operation_history": "What was done, by whom and with which outcome.",
}


def manifest(home: Path) -> dict[str, Any]:
    """What the client reads of the bundle."""
    run: dict[str, Any] = {"command": sys.executable, "args": ["-I", "${__dirname}/server/main.py"]}
    if environment(home):
        run["env"] = environment(home)
    return {
        "manifest_version": "0.3",
        "name": NAME,
        "display_name": "Computer Linker",
        "version": __version__,
        "description": "Controlled use of this computer: files, search, git, commands and desktop, within scopes you choose.",
        "author": {"name": "Computer Linker"},
        "license": "MIT",
        "server": {"type": "python", "entry_point": "server/main.py", "mcp_config": run},
        "tools": [{"name": name, "description": text} for name, text in _TOOLS.items()],
        "compatibility": {"runtimes": {"python": ">=3.11"}},
    }


def write_bundle(file: Path, home: Path) -> None:
    """Write the bundle; an older file of this name is replaced."""
    fresh = file.with_name(f".{file.name}.new")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("manifest.json", json.dumps(manifest(home), indent=2) + "\n")
        bundle.writestr("server/main.py", _START)
    fresh.replace(file)
