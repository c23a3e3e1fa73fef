"""token.rotate: a new owner's token in place of the old."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.approvals.approvals import Approvals
from computer_linker.auth.oauth.state import OAuthState
from computer_linker.auth.owner_token import digest_of, new_token
from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, owner_operation
from computer_linker.service.changing_config import change_config, first_config

_HOLDERS = "owner"
"""The principal of every client with the owner token."""


class RotateInput(Model):
    digest: Annotated[bool, Field(description="Keep only a digest: the token is shown now and never again.")] = False
    show_token: Annotated[bool, Field(description="Print the new token.")] = False
    revoke: Annotated[
        bool, Field(description="Also stop at once what OAuth clients have running. Their sessions end anyway.")
    ] = False


class Rotated(Model):
    rotated: bool
    stopped: Annotated[int, Field(description="Calls of the old token that were under way.")] = 0
    ended: Annotated[int, Field(description="Processes, agents and browsers of the old token that were ended.")] = 0
    owner_token: Annotated[str | None, Field(description="The new token, when it is to be shown.")]


def _text(result: Rotated) -> Iterator[Shown]:
    yield Note("The old token no longer works.")
    if result.stopped or result.ended:
        yield Note(f"Of its clients were ended: calls {result.stopped}, processes {result.ended}.")
    if result.owner_token is not None:
        yield result.owner_token


@owner_operation(
    "token.rotate",
    did="made a new owner token",
    effect=Effect.CHANGE,
    text=_text,
    examples=[Example("A new token, shown once.", {"input": {"digest": True}})],
)
async def token_rotate(ctx: Context, input: RotateInput = RotateInput()) -> Rotated:
    """Replace the token. The old one, and every OAuth session it consented to, stop working with the next request.

    What clients with the old token have running is ended: their calls at once, then their processes.
    """
    token = new_token()
    await first_config(ctx, with_token=False)

    def edit(document: dict[str, Any]) -> None:
        document["ownerToken"] = digest_of(token) if input.digest else token

    await change_config(ctx, edit)
    # What was asked for with the old token is not waited for any more: a yes would let it run all the same.
    ctx.use(Approvals).drop_of(_HOLDERS)
    stopped = _end_calls(ctx.use(LiveSessions))
    ended = await ctx.services.end_of(_HOLDERS)
    if input.revoke:
        state = ctx.use(OAuthState)
        for family in list(state.families):
            state.revoke(family)
    ctx.note(stopped=stopped, ended=ended)
    shown = token if input.show_token or input.digest else None
    return Rotated(rotated=True, stopped=stopped, ended=ended, owner_token=shown)


def _end_calls(live: LiveSessions) -> int:
    """End the sessions of the old token; each may begin anew with the new one. A batch ends with its call."""
    sessions = [one for one in live.listed() if one.principal.id == _HOLDERS]
    stopped = sum(len(one.running) for one in sessions)
    for session in sessions:
        live.end(session)
    live.let_back(_HOLDERS)
    return stopped
