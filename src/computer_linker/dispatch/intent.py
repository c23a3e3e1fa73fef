"""Intent before effect: the record of what is about to happen is durable before the first irreversible step."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from computer_linker.approvals.approvals import Approvals, Describe, Yes
from computer_linker.approvals.request import ApprovalRequest, check_unchanged
from computer_linker.approvals.standing import policy_of
from computer_linker.audit.log import AuditLog
from computer_linker.errors import ConfirmRequired
from computer_linker.model.event import Event
from computer_linker.model.scope import Rights
from computer_linker.policy.engine import find_scope, judge, refuse
from computer_linker.registry.context import Context
from computer_linker.registry.operation import Operation

_AGAIN = "Send the request again to ask."


class Intent:
    """The intent of one side effect.

    Most operations start once it is durable. One that declares `awaits_intent` prepares first (a temporary file, say), and
    just before it changes anything awaits `ctx.durable_intent()`.
    """

    def __init__(self, audit: AuditLog, event: Event) -> None:
        self._audit = audit
        self._event = event
        self._synced: asyncio.Future[None] | None = None

    def record(self) -> None:
        """Write the record. Raises the error that prevented it."""
        self._event.intended = True
        self._audit.intent(self._event)

    async def durable(self) -> None:
        """Return once the record is durable; raises the error that prevented it."""
        if self._synced is None:
            self._synced = self._audit.durable()
        await self._synced

    def sync_with(self, work: Callable[[], None]) -> Awaitable[None]:
        """Run preparation that syncs to disk in the same group commit as the record."""
        self._synced = self._audit.durable(work)
        return self._synced


async def run_after_intent(ctx: Context, op: Operation, arguments: dict[str, Any], intent: Intent | None) -> Any:
    """Run the operation once its intent is on record, durably unless it waits for that itself."""
    if intent is None:
        return await op.run(ctx, **arguments)
    intent.record()
    if not op.passes_gate_itself:
        await ctx.durable_intent()
    return await op.run(ctx, **arguments)


# Checks that state and policy are unchanged between the approval of a call and its effect.


def hold_to_policy(ctx: Context, rights: Rights, yes: Yes | None) -> None:
    """Judge the call by the present policy: the owner may have changed it while the call waited for approval or its turn."""
    scope = ctx.scope = find_scope(ctx.services.current_config, ctx.scope.id, ctx.principal)
    verdict = judge(scope, rights, ctx.principal)
    refuse(verdict, rights)
    if verdict.decision != "ask":
        return
    if yes is None:
        raise ConfirmRequired(
            f"{verdict.reason} The owner decided this while the call waited for its turn, so nothing was done. {_AGAIN}"
        )
    if not _still_holds(ctx, yes, policy_of(scope, ctx.principal)):
        raise ConfirmRequired(
            f"The yes was given under other rules of scope {scope.id}, or was taken back since, so nothing was done. {_AGAIN}"
        )


def _still_holds(ctx: Context, yes: Yes, rules: str) -> bool:
    """Whether a yes was given under these rules, of which the person saw folder, boundary and network, and still stands."""
    if yes.asked.policy != rules:
        return False
    return yes.standing is None or ctx.use(Approvals).store.has(yes.standing, rules)


def hold_to(
    ctx: Context, yes: ApprovalRequest, seen: Context, preview: Describe, is_allowed: Callable[[], None]
) -> None:
    """Compare with what the person saw, at the last moment before the effect: where the intent is made durable.

    `is_allowed` raises where the rules are others by then. `seen` is the context of the preview. File changes are compared as
    they are about to be made, not planned once more.
    """
    if yes.about is not None and yes.about.fault is not None:
        # No part of the operation runs on an approval of what could not be shown.
        check_unchanged(yes, yes.about)
    recorded = ctx.durable_intent
    ctx.is_held = True

    async def gate() -> None:
        await recorded()
        is_allowed()
        if yes.about is not None:
            seen.planned = ctx.planned
            check_unchanged(yes, await preview())

    ctx.durable_intent = gate
