"""status: whether clients can use this computer."""

from computer_linker.registry.owner import Context, Effect, Example, owner_operation
from computer_linker.service.reports import StatusReport, status_report


@owner_operation("status", effect=Effect.OBSERVE, is_derived=False, examples=[Example("How things stand.", {})])
async def status(ctx: Context) -> StatusReport:
    """Show whether clients can use this computer, what listens, and what to do next."""
    return await status_report(ctx)
