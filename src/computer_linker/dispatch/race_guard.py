"""Checks that state and policy are unchanged between the approval of a call and its effect."""

from computer_linker.approvals.approvals import Approvals, Describe, Yes
from computer_linker.approvals.request import ApprovalRequest, check_unchanged
from computer_linker.approvals.standing import policy_of
from computer_linker.errors import ConfirmRequired
from computer_linker.model.rights import Rights
from computer_linker.policy.engine import find_scope, judge, refuse
from computer_linker.registry.context import Context


def hold_to_policy(ctx: Context, rights: Rights, yes: Yes | None) -> None:
    """Judge the call by the present policy: the owner may have changed it while the call waited for approval or its turn."""
    scope = ctx.scope = find_scope(ctx.services.current_config, ctx.scope.id, ctx.principal)
    verdict = judge(scope, rights, ctx.principal)
    refuse(verdict, rights)
    if verdict.decision != "ask" or (yes is not None and yes.standing is None):
        return
    rules = policy_of(scope, ctx.principal)
    if yes is None or yes.standing is None or not ctx.use(Approvals).store.has(yes.standing, rules):
        raise ConfirmRequired(
            f"{verdict.reason} The owner decided this while the call waited for its turn, so nothing was done. "
            "Send the request again to ask."
        )


def hold_to(ctx: Context, yes: ApprovalRequest, seen: Context, preview: Describe) -> None:
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
