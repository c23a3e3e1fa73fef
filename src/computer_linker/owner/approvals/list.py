"""approvals.list: the requests that wait for a person."""

from typing import Annotated

from pydantic import Field

from computer_linker.approvals.terminal import Listed, OpenHost, TerminalApprovals
from computer_linker.providers.network.asking import Asking, Granted
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation


class ListInput(Model):
    stays: Annotated[bool, Field(description="The terminal shows a question: calls wait for it.")] = False
    known: Annotated[
        list[str] | None,
        Field(description="Wait until others wait than these, which the terminal shows. Calls wait for it meanwhile."),
    ] = None


@owner_operation(
    "approvals.list",
    effect=Effect.OBSERVE,
    where="service",
    is_derived=False,
    examples=[Example("What waits for an answer?", {})],
)
async def approvals_list(ctx: Context, input: ListInput = ListInput()) -> Listed:
    """What waits for an answer now."""
    from computer_linker.transports.http.approval_page import ApprovalPage

    terminals = ctx.use(TerminalApprovals)
    if input.stays:
        terminals.stay()
    listed = await (terminals.waiting() if input.known is None else terminals.changed(set(input.known)))
    page, asking = ctx.services.peek(ApprovalPage), ctx.services.peek(Asking)
    pages = [] if page is None else page.opened()
    hosts = [] if asking is None else [_shown(one) for one in asking.open_hosts()]
    return listed.model_copy(update={"pages": pages, "hosts": hosts})


def _shown(one: Granted) -> OpenHost:
    return OpenHost(id=one.id, scope=one.scope, host=one.entry, expires_at=one.expires_at)
