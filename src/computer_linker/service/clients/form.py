"""The model of a client: its settings file, its entry's path, and how it connects to this service."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from computer_linker.service.clients.jsonc import Jsonc

NAME = "computer-linker"
TOKEN_VARIABLE = "COMPUTER_LINKER_TOKEN"  # noqa: S105  # the variable's name, not a token
"""The environment variable for clients that read the token from one."""


@dataclass(frozen=True, slots=True)
class Stdio:
    """The client starts our program itself."""

    command: list[str]
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Http:
    """The client connects to a running service. Without a token it signs in by OAuth, or needs nothing on loopback."""

    url: str
    token: str | None = None
    signs_in: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers beside the token."""


Connection = Stdio | Http


@dataclass(frozen=True, slots=True)
class User:
    """Whose settings these are: a home folder, an environment and a system."""

    home: Path
    environment: Mapping[str, str]
    system: Literal["linux", "darwin", "windows"]

    def settings(self, *, linux: str) -> Path:
        """The folder applications keep settings in on this system; `linux` is its place below the home folder there."""
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        if self.system == "windows":
            return Path(self.environment.get("APPDATA") or self.home / "AppData" / "Roaming")
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / linux)


class Document(Protocol):
    """A settings file's language: how one entry is read, added and removed without touching the rest."""

    def get(self, text: str, path: tuple[str, ...]) -> Any: ...

    def put(self, text: str, path: tuple[str, ...], value: Any) -> str: ...

    def drop(self, text: str, path: tuple[str, ...]) -> str: ...


@dataclass(frozen=True, slots=True)
class Rules:
    """Permission rules of a client's own: a list in one of its settings files, in JSON."""

    file: Callable[[User], Path]
    path: tuple[str, ...]
    """The keys that lead to the list."""
    allow: tuple[str, ...]
    """The rules that let the tools which only observe run unasked."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client program and the form its settings have."""

    name: str
    title: str
    programs: tuple[str, ...]
    """Its commands, to detect whether it is installed."""
    file: Callable[[User], Path]
    entry: Callable[[Connection], dict[str, Any]]
    document: Document = field(default_factory=Jsonc)
    container: tuple[str, ...] = ("mcpServers",)
    """The keys that lead to the table of servers."""
    projects: str | None = None
    """The key of a table in the same file with separate servers for each project folder."""
    rules: Rules | None = None
    """What it needs beside the entry, so that reads run unasked; None where the tools' annotations are enough."""
    after: str = "Start a new session of the client; it reads its settings when it starts."
    sign_in: str = "Start a new session of the client, and sign in there."
    """How to sign in from the client: the browser then shows the consent page."""

    @property
    def path(self) -> tuple[str, ...]:
        """The keys that lead to our own entry."""
        return (*self.container, NAME)

    def paths(self, text: str) -> dict[str | None, tuple[str, ...]]:
        """The keys that lead to each entry of ours that the file has, by the project it is for; None is for all of them."""
        found: dict[str | None, tuple[str, ...]] = {}
        if self.document.get(text, self.path) is not None:
            found[None] = self.path
        folders = self.document.get(text, (self.projects,)) if self.projects else None
        for folder, value in folders.items() if isinstance(folders, dict) else ():
            for key in self.path:
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                found[folder] = (self.projects or "", folder, *self.path)
        return found


def headers_of(connection: Http) -> dict[str, str]:
    """The headers of the connection: the token's when there is one, and the others."""
    token = {} if connection.token is None else {"Authorization": f"Bearer {connection.token}"}
    return {**token, **connection.headers}


def plain_entry(connection: Connection, *, typed: bool, url_key: str = "url") -> dict[str, Any]:
    """The entry most clients share: command, args and env, or an address and headers."""
    if isinstance(connection, Stdio):
        entry: dict[str, Any] = {"type": "stdio"} if typed else {}
        entry |= {"command": connection.command[0], "args": connection.command[1:]}
        return entry | ({"env": connection.environment} if connection.environment else {})
    entry = {"type": "http"} if typed else {}
    entry[url_key] = connection.url
    return entry | ({"headers": headers_of(connection)} if headers_of(connection) else {})
