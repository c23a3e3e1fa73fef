"""sessions.list: the OAuth clients that hold a session."""

import time
from collections.abc import Iterator
from typing import Literal

from computer_linker.auth.oauth.state import Family, OAuthState
from computer_linker.auth.owner_token import kept_digest
from computer_linker.model.times import shown_s
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, Table, owner_operation

Standing = Literal["live", "expired", "ended by a new owner token"]


class Session(Model):
    id: str
    client: str
    client_id: str
    scopes: list[str]
    grants: list[str]
    resource: str | None
    created_at: str
    last_used_at: str
    expires_at: str | None
    standing: Standing


class Sessions(Model):
    sessions: list[Session]


def _text(result: Sessions) -> Iterator[Shown]:
    if not result.sessions:
        yield Note("No client holds a session.")
        return
    rows = [(s.id, s.client, s.standing, " ".join(s.scopes), s.last_used_at) for s in result.sessions]
    yield Table(rows, ("session", "client", "", "may", "last used"))


@owner_operation(
    "sessions.list", effect=Effect.OBSERVE, text=_text, examples=[Example("Who may use this computer over OAuth.", {})]
)
async def sessions_list(ctx: Context) -> Sessions:
    """Who may use this computer over OAuth, what for, and until when."""
    token = ctx.services.config.owner_token
    digest = None if token is None else kept_digest(token)
    families = sorted(ctx.use(OAuthState).families.values(), key=lambda family: -family.last_used_at)
    return Sessions(sessions=[_shown(family, digest) for family in families])


def _shown(family: Family, owner_digest: str | None) -> Session:
    ends = max([*family.refresh.values(), *family.access.values()], default=0.0)
    standing: Standing = "live" if ends > time.time() else "expired"
    if family.owner_digest != owner_digest:
        standing = "ended by a new owner token"
    return Session(
        id=family.id,
        client=family.client_name,
        client_id=family.client_id,
        scopes=family.scopes,
        grants=family.grants,
        resource=family.resource,
        created_at=shown_s(family.created_at),
        last_used_at=shown_s(family.last_used_at),
        expires_at=shown_s(ends) if ends else None,
        standing=standing,
    )
