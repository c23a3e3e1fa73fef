"""What OAuth keeps: clients, and families of tokens as digests. Written whole and atomically; nothing in it opens anything."""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from computer_linker.config.store import write_whole

FILE_NAME = "oauth-state.json"
MAX_NEW_A_MINUTE = 60
MAX_CLIENTS = 200
UNUSED_CLIENT_S = 24 * 3600
CODE_S = 60
ACCESS_S = 15 * 60
REFRESH_S = 30 * 24 * 3600
_MAX_FAMILIES = 500


@dataclass
class Client:
    """A registered client. All are public: there is no secret to keep."""

    id: str
    name: str
    redirect_uris: list[str]
    registered_at: float
    used: bool = False


@dataclass
class Family:
    """One consent and every token that came of it. A refresh token that is used twice ends the whole family."""

    id: str
    client_id: str
    client_name: str
    scopes: list[str]
    grants: list[str]
    resource: str
    owner_digest: str
    created_at: float
    last_used_at: float
    access: dict[str, float] = field(default_factory=dict)
    refresh: dict[str, float] = field(default_factory=dict)
    used_refresh: list[str] = field(default_factory=list)

    @property
    def principal(self) -> str:
        """Who calls with its tokens.

        A registered client keeps its name when the owner gives it more, and with it the session and the processes it
        began. One that is named by a document may be many at once, each with a consent of its own.
        """
        return f"oauth:{self.id if self.client_id.startswith('https://') else self.client_id}"

    @property
    def is_alive(self) -> bool:
        """Whether any token of it can still be used, or the code for its first ones."""
        now = time.time()
        return max([self.created_at + CODE_S, *self.access.values(), *self.refresh.values()]) > now


@dataclass(frozen=True)
class Pair:
    """A new access and refresh token, in clear this once."""

    access: str
    refresh: str


class OAuthState:
    """The state in memory, stored after each change."""

    def __init__(self, home: Path, gone: Callable[[str], None] | None = None) -> None:
        self._home = home
        self._gone = gone
        self.clients: dict[str, Client] = {}
        self.families: dict[str, Family] = {}
        self._calls: dict[str, list[Callable[[], None]]] = {}
        self._load()

    @classmethod
    def open(cls, services: Any) -> Self:
        return cls(services.home, services.gone)

    def register(self, name: str, redirect_uris: list[str]) -> Client | None:
        """A new client; None when there are too many, or too many came within a minute.

        Clients nobody consented to are forgotten after a day, and the oldest of them when the room is needed: anyone may
        register, and whoever does nothing else must not keep others out for long.
        """
        now = time.time()
        unused = [client for client in self.clients.values() if not client.used]
        if sum(now - 60 < client.registered_at <= now for client in unused) >= MAX_NEW_A_MINUTE:
            return None
        for client in unused:
            if client.registered_at < now - UNUSED_CLIENT_S or len(self.clients) >= MAX_CLIENTS:
                del self.clients[client.id]
        self._make_room()
        if len(self.clients) >= MAX_CLIENTS:
            return None
        client = Client("client_" + secrets.token_urlsafe(18), name, redirect_uris, now)
        self.clients[client.id] = client
        self._store()
        return client

    def _make_room(self) -> None:
        """Forget clients whose every session is over, the oldest first, once there are as many as may be."""
        living = {family.client_id for family in self.families.values() if family.is_alive}
        for client in list(self.clients.values()):
            if len(self.clients) >= MAX_CLIENTS and client.id not in living:
                del self.clients[client.id]

    def begin(self, client: Client, scopes: list[str], grants: list[str], resource: str, owner_digest: str) -> Family:
        """A new family after a consent."""
        now = time.time()
        client.used = True
        family = Family(
            "session_" + secrets.token_hex(8), client.id, client.name, scopes, grants, resource, owner_digest, now, now
        )
        self.families = {key: old for key, old in self.families.items() if old.is_alive}
        while len(self.families) >= _MAX_FAMILIES:
            del self.families[min(self.families.values(), key=lambda old: old.last_used_at).id]
        self.families[family.id] = family
        return family

    def issue(self, family: Family) -> Pair:
        """New tokens for a family, stored as digests before they are given out."""
        now = time.time()
        pair = Pair("cla_" + secrets.token_urlsafe(32), "clr_" + secrets.token_urlsafe(32))
        family.access = {key: end for key, end in family.access.items() if end > now}
        family.access[digest(pair.access)] = now + ACCESS_S
        family.refresh = {digest(pair.refresh): now + REFRESH_S}
        family.last_used_at = now
        self._store()
        return pair

    def use_refresh(self, family: Family, token: str) -> bool:
        """Use up a refresh token. False, and the family is gone, when it was used before."""
        key = digest(token)
        if key not in family.refresh:
            self.revoke(family.id)
            return False
        del family.refresh[key]
        family.used_refresh = [*family.used_refresh, key][-200:]
        return True

    def family_of_access(self, token: str) -> Family | None:
        """The family of a live access token."""
        key, now = digest(token), time.time()
        return next((family for family in self.families.values() if family.access.get(key, 0) > now), None)

    def family_once_of_access(self, token: str) -> Family | None:
        """The family of an access token that is live, or has expired since its family was given tokens last."""
        key = digest(token)
        return next((family for family in self.families.values() if key in family.access), None)

    def family_of_refresh(self, token: str) -> Family | None:
        """The family of a refresh token, live or used; the caller finds out which by using it."""
        key, now = digest(token), time.time()
        for family in self.families.values():
            if family.refresh.get(key, 0) > now or key in family.used_refresh:
                return family
        return None

    def revoke(self, family_id: str) -> bool:
        """End every token of a family."""
        found = self.families.pop(family_id, None)
        if found is not None:
            self._store()
        for end in list(self._calls.get(family_id, ())):
            end()
        if found is not None and self._gone is not None and not self._calls_on(found.principal):
            self._gone(found.principal)
        return found is not None

    def has_session(self, client_id: str) -> bool:
        """Whether anything the owner gave this client still holds."""
        return any(family.client_id == client_id and family.is_alive for family in self.families.values())

    def _calls_on(self, principal: str) -> bool:
        """Whether another consent lets the same client go on."""
        return any(family.principal == principal and family.is_alive for family in self.families.values())

    @contextmanager
    def during(self, family_id: str, end: Callable[[], None]) -> Iterator[None]:
        """Have `end` called when the family is revoked while the body runs."""
        calls = self._calls.setdefault(family_id, [])
        calls.append(end)
        try:
            yield
        finally:
            calls.remove(end)
            if not calls:
                self._calls.pop(family_id, None)

    def _load(self) -> None:
        path = self._home / FILE_NAME
        if not path.exists():
            return
        value = json.loads(path.read_text("utf-8"))
        self.clients = {item["id"]: Client(**item) for item in value["clients"]}
        self.families = {item["id"]: Family(**item) for item in value["families"]}

    def _store(self) -> None:
        value = {
            "schemaVersion": 1,
            "clients": [asdict(client) for client in self.clients.values()],
            "families": [asdict(family) for family in self.families.values()],
        }
        write_whole(self._home, FILE_NAME, json.dumps(value, indent=1).encode())


def digest(token: str) -> str:
    """How a token is kept: it is random, so a plain digest tells nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
