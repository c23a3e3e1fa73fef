"""Checks that state and policy are unchanged between the approval of a call and its effect."""

from typing import Literal

from computer_linker.errors import ConfirmRequired
from computer_linker.model.rights import Rights
from computer_linker.policy.confirm import Asked, check_unchanged
from computer_linker.policy.engine import find_scope, judge, refuse
from computer_linker.providers.approvals import Approvals, Describe
from computer_linker.registry.context import Context

Consent = Literal["none", "once", "session"]
"""A person's answer to a call: none (not asked), approval of this call, or of its whole session."""


def hold_to_policy(ctx: Context, rights: Rights, consent: Consent) -> None:
    """Judge the call by the present policy: the owner may have changed it while the call waited for approval or its turn."""
    scope = ctx.scope = find_scope(ctx.services.current_config, ctx.scope.id, ctx.principal)
    verdict = judge(scope, rights, ctx.principal)
    refuse(verdict, rights)
    if verdict.decision != "ask" or consent == "once":
        return
    if consent == "none" or not ctx.use(Approvals).ledger.has_standing(ctx.principal, scope.id):
        raise ConfirmRequired(
            f"{verdict.reason} The owner decided this while the call waited for its turn, so nothing was done. "
            "Send the request again to ask."
        )


def hold_to(ctx: Context, yes: Asked, seen: Context, preview: Describe) -> None:
    """Compare with what the person saw, at the last moment before the effect: where the intent is made durable.

    `seen` is the context of the preview. File changes are compared as they are about to be made, not planned once more.
    """
    if yes.about is not None and yes.about.fault is not None:
        # No part of the operation runs on an approval of what could not be shown.
        check_unchanged(yes, yes.about)
    recorded = ctx.durable_intent

    async def gate() -> None:
        await recorded()
        seen.planned = ctx.planned
        check_unchanged(yes, await preview())

    ctx.durable_intent = gate
