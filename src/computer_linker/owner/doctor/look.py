"""doctor.look: everything that is looked at, also while the config is refused."""

from computer_linker.registry.owner import Context, Effect, Example, owner_operation
from computer_linker.service.reports import DoctorReport, doctor_report


@owner_operation("doctor.look", effect=Effect.OBSERVE, is_derived=False, examples=[Example("Look at everything.", {})])
async def doctor_look(ctx: Context) -> DoctorReport:
    """Look at config, security, programs, listeners and release readiness."""
    return await doctor_report(ctx)
