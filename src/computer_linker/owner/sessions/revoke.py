"""sessions.revoke: end the sessions of clients, whatever their authorization."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.auth.oauth.state import OAuthState
from computer_linker.dispatch.live_sessions import LiveSession, LiveSessions
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.owner.sessions.list import live_sessions
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    Model,
    Named,
    Note,
    Positional,
    Shown,
    owner_operation,
)

_AGAIN = {
    "owner_token": "It still holds the owner token: computer-linker token rotate",
    "local_user": "It can begin a new one; computer-linker pause keeps every client out.",
    "loopback": "Without an owner token any program here can begin a new one: computer-linker token rotate",
    "peer": "It is still paired and can connect again: computer-linker peer list, then peer remove NAME",
    "bridge": "It can begin a new one; computer-linker pause keeps every client out.",
}


class RevokeInput(Model):
    session: Annotated[
        str | None, Field(description="The session, as `sessions list` names it, or its beginning."), Positional()
    ] = None
    everything: Annotated[bool, Field(description="End every session."), Named("--all")] = False


class Revoked(Model):
    revoked: list[str]
    stopped: Annotated[int, Field(description="Calls that were under way.")] = 0
    notes: Annotated[list[str], Field(description="What the clients can still do.")] = []


def _text(result: Revoked) -> Iterator[Shown]:
    stopped = f" and stopped {result.stopped} of their calls" if result.stopped else ""
    yield f"Ended {len(result.revoked)} session{'' if len(result.revoked) == 1 else 's'}{stopped}."
    yield from map(Note, result.notes)


@owner_operation(
    "sessions.revoke",
    did="ended the sessions of {ended}",
    effect=Effect.CHANGE,
    text=_text,
    examples=[Example("End all.", {"input": {"everything": True}})],
)
async def sessions_revoke(ctx: Context, input: RevokeInput) -> Revoked:
    """End a session at once, with its running calls: its connection closes, its tokens stop working."""
    if (input.session is None) is not input.everything:
        raise InvalidRequest("Name one session, or --all.", hint="computer-linker sessions list")
    state, live = ctx.use(OAuthState), {one.id: one for one in live_sessions(ctx)}
    wanted = [*state.families, *live] if input.session is None else [_meant(input.session, [*state.families, *live])]
    named = [live[one] for one in wanted if one in live]
    # A live session of an OAuth client is that of its consents.
    granted_to = {one.principal.id for one in named if one.principal.proof == "oauth"}
    families = [key for key, one in state.families.items() if key in wanted or one.principal in granted_to]
    names = {key: state.families[key].client_name for key in families}
    for family in families:
        state.revoke(family)
    granted = {one.principal for one in state.families.values()}
    ended = [one for one in live.values() if one in named or _is_over(one, granted)]
    stopped = sum(len(one.running) for one in ended)
    for session in ended:
        ctx.use(LiveSessions).end(session)
    is_left = any(one in state.families for one in families) or any(one in ended for one in live_sessions(ctx))
    ctx.effect = "partial" if is_left else "confirmed"
    others = {one.id: one.principal.client or one.principal.id for one in ended if one.principal.proof != "oauth"}
    revoked = [*names, *others]
    only = revoked[0] if len(revoked) == 1 else None
    clients = ", ".join(dict.fromkeys([*names.values(), *others.values()]))
    ctx.note(sessions=len(revoked), session=only, clients=clients, stopped=stopped)
    notes = dict.fromkeys(_AGAIN[one.principal.proof] for one in ended if one.principal.proof in _AGAIN)
    return Revoked(revoked=revoked, stopped=stopped, notes=list(notes))


def _is_over(session: LiveSession, granted: set[str]) -> bool:
    """True for a session of an OAuth client that no consent gives access any more."""
    return session.principal.proof == "oauth" and session.principal.id not in granted


def _meant(given: str, known: list[str]) -> str:
    found = [given] if given in known else [one for one in known if len(given) > 5 and one.startswith(given)]
    if not found:
        raise NotFound(f"There is no session {given[:80]!r}.", hint="computer-linker sessions list")
    if len(found) > 1:
        raise InvalidRequest(f"Several sessions begin with {given[:80]!r}.", hint="computer-linker sessions list")
    return found[0]
