"""The OAuth state: clients, and token families as digests. Written whole and atomically; it holds no usable secret."""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from computer_linker.config.store import write_whole
from computer_linker.services import Services

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
    """One consent and every token issued from it. A refresh token that is used twice ends the whole family."""

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
    places: dict[str, list[str]] = field(default_factory=dict)
    """Where the granted scopes were when the owner consented; of older consents nothing."""

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
        self._stale: set[str] = set()
        """Consents of an earlier owner token, whose calls and processes have been ended."""
        self._load()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home, services.gone)

    def register(self, name: str, redirect_uris: list[str]) -> Client | None:
        """A new client; None when there are too many, or too many within a minute.

        Clients without a consent are removed after a day, and the oldest of them when space is needed: anyone may
        register, and a client that does nothing else must not keep others out for long.
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
        """Remove clients whose every session is over, the oldest first, once the limit is reached."""
        living = {family.client_id for family in self.families.values() if family.is_alive}
        for client in list(self.clients.values()):
            if len(self.clients) >= MAX_CLIENTS and client.id not in living:
                del self.clients[client.id]

    def begin(
        self,
        client: Client,
        scopes: list[str],
        grants: list[str],
        resource: str,
        owner_digest: str,
        places: dict[str, list[str]] | None = None,
    ) -> Family:
        """A new family after a consent. `places` is where its scopes are."""
        now = time.time()
        client.used = True
        family = Family(
            "session_" + secrets.token_hex(8), client.id, client.name, scopes, grants, resource, owner_digest, now, now,
            places=places or {},
        )  # fmt: skip
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
        """The family of an access token that is live, or expired since its family's last token."""
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
            self._end(found)
        return found is not None

    def end_stale(self, owner_digest: str | None) -> None:
        """End the calls and the processes of consents that another owner token gave.

        Their tokens stay stored, so that their holders learn why they are refused.
        """
        for family in list(self.families.values()):
            if family.owner_digest != owner_digest and family.id not in self._stale:
                self._stale.add(family.id)
                self._end(family)

    def _end(self, family: Family) -> None:
        for end in list(self._calls.get(family.id, ())):
            end()
        if self._gone is not None and not self._has_equal_consent(family):
            self._gone(family.principal)

    def has_session(self, client_id: str) -> bool:
        """Whether this client still has a valid grant."""
        return any(family.client_id == client_id and family.is_alive for family in self.families.values())

    def _has_equal_consent(self, ended: Family) -> bool:
        """Whether another consent grants the same client all that this one did: its processes may then continue."""
        others = (one for one in self.families.values() if one.id != ended.id and one.id not in self._stale)
        return any(
            one.principal == ended.principal and one.is_alive and {*ended.grants} <= {*one.grants} for one in others
        )

    @contextmanager
    def during(self, family_id: str, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` when the family is revoked while the body runs."""
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
    """The stored form of a token: it is random, so a plain digest reveals nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
