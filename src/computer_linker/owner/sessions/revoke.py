"""sessions.revoke: end the sessions of OAuth clients."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.auth.oauth.state import OAuthState
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.registry.owner import Context, Effect, Example, Model, Named, Positional, Shown, owner_operation


class RevokeInput(Model):
    session: Annotated[str | None, Field(description="The session, as `sessions list` names it."), Positional()] = None
    everything: Annotated[bool, Field(description="End every session."), Named("--all")] = False


class Revoked(Model):
    revoked: list[str]


def _text(result: Revoked) -> Iterator[Shown]:
    yield f"Ended {len(result.revoked)} session{'' if len(result.revoked) == 1 else 's'}."


@owner_operation(
    "sessions.revoke", effect=Effect.CHANGE, text=_text, examples=[Example("End all.", {"input": {"everything": True}})]
)
async def sessions_revoke(ctx: Context, input: RevokeInput) -> Revoked:
    """End a session: its tokens stop working with the next request."""
    if (input.session is None) is not input.everything:
        raise InvalidRequest("Name one session, or --all.", hint="computer-linker sessions list")
    state = ctx.use(OAuthState)
    if input.session is not None and input.session not in state.families:
        raise NotFound(f"There is no session {input.session[:80]!r}.", hint="computer-linker sessions list")
    ended = list(state.families) if input.session is None else [input.session]
    for family in ended:
        state.revoke(family)
    ctx.effect = "confirmed" if not set(ended) & set(state.families) else "partial"
    ctx.note(sessions=len(ended))
    return Revoked(revoked=ended)
