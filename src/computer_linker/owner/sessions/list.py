"""sessions.list: every live session of a client, and every OAuth client that may begin one."""

import time
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from computer_linker.audit.wording import person
from computer_linker.auth.oauth.state import Family, OAuthState
from computer_linker.auth.owner_token import kept_digest
from computer_linker.dispatch.live_sessions import LiveSession, LiveSessions
from computer_linker.model.times import shown_s
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, Table, owner_operation

Standing = Literal["live", "idle", "expired", "ended by a new owner token"]
Kind = Literal["OAuth", "owner token", "local user", "no token", "bridge", "peer", "fleet"]
_KINDS: dict[str, Kind] = {
    "oauth": "OAuth",
    "owner_token": "owner token",
    "local_user": "local user",
    "loopback": "no token",
    "bridge": "bridge",
    "peer": "peer",
}


class Session(Model):
    id: str
    kind: Annotated[Kind, Field(description="How the client proved who it is.")]
    client: str
    address: Annotated[
        str, Field(description="Where its calls come from; empty for an OAuth client that has made none.")
    ]
    standing: Standing
    calls: Annotated[int, Field(description="Since this service began.")]
    running: Annotated[int, Field(description="Calls under way.")]
    created_at: str
    last_used_at: str
    principal: str
    client_id: Annotated[str | None, Field(description="Of OAuth clients, as is all below.")] = None
    scopes: list[str] = []
    grants: list[str] = []
    resource: str | None = None
    expires_at: str | None = None


class Sessions(Model):
    sessions: list[Session]


def _text(result: Sessions) -> Iterator[Shown]:
    if not result.sessions:
        yield Note("No client holds a session.")
        return
    rows = [
        (
            s.id,
            s.kind,
            person(s.principal, s.client if s.client != s.principal else None),
            s.address,
            s.standing,
            s.last_used_at,
            str(s.calls),
        )
        for s in result.sessions
    ]
    yield Table(rows, ("session", "proved by", "client", "address", "", "last seen", "calls"))


@owner_operation(
    "sessions.list", effect=Effect.OBSERVE, text=_text, examples=[Example("Who uses this computer, and who may.", {})]
)
async def sessions_list(ctx: Context) -> Sessions:
    """List every client that is connected, with how it proved itself, and every OAuth client that may come again."""
    token = ctx.services.config.owner_token
    digest = None if token is None else kept_digest(token)
    live = live_sessions(ctx)
    families = list(ctx.use(OAuthState).families.values())
    granted = {family.principal for family in families}
    found = [
        _of_family(family, digest, [one for one in live if one.principal.id == family.principal]) for family in families
    ]
    found += [_of_live(one) for one in live if one.principal.id not in granted and not _is_over(one)]
    return Sessions(sessions=sorted(found, key=lambda one: one.last_used_at, reverse=True))


def live_sessions(ctx: Context) -> list[LiveSession]:
    """The sessions of the running service; none where no service runs."""
    sessions = ctx.services.peek(LiveSessions)
    return [] if sessions is None else sessions.listed()


def _is_over(one: LiveSession) -> bool:
    """Whether it was an OAuth client whose access was taken back: nothing of it runs, and its token opens nothing."""
    return one.principal.proof == "oauth" and not one.closes and not one.running


def _of_live(one: LiveSession) -> Session:
    who = one.principal
    return Session(
        id=one.id,
        kind="fleet" if who.connection.startswith("fleet-") else _KINDS.get(who.proof, "local user"),
        client=who.client or who.id,
        address=_address(one),
        standing="live" if one.closes or one.running else "idle",
        calls=one.calls,
        running=len(one.running),
        created_at=shown_s(one.since),
        last_used_at=shown_s(one.last_seen),
        principal=who.id,
    )


def _of_family(family: Family, owner_digest: str | None, live: list[LiveSession]) -> Session:
    ends = max([*family.refresh.values(), *family.access.values()], default=0.0)
    standing: Standing = "live" if ends > time.time() else "expired"
    if family.owner_digest != owner_digest:
        standing = "ended by a new owner token"
    return Session(
        id=family.id,
        kind="OAuth",
        client=family.client_name,
        address=", ".join(dict.fromkeys(map(_address, live))),
        standing=standing,
        calls=sum(one.calls for one in live),
        running=sum(len(one.running) for one in live),
        created_at=shown_s(family.created_at),
        last_used_at=shown_s(max([family.last_used_at, *(one.last_seen for one in live)])),
        principal=family.principal,
        client_id=family.client_id,
        scopes=family.scopes,
        grants=family.grants,
        resource=family.resource,
        expires_at=shown_s(ends) if ends else None,
    )


def _address(one: LiveSession) -> str:
    connection = one.principal.connection
    if connection.startswith("http-"):
        return connection.removeprefix("http-").removeprefix("forwarded-")
    return one.principal.id.partition(":")[2] if one.principal.proof == "peer" else "this computer"
