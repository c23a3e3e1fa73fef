"""service.install: have the system's service manager start and keep the service."""

from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.errors import ExecutionFailed
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.install.keep import Installed, install, this_manager
from computer_linker.service.install.plan import ServiceManagerFailed, make_plan


class InstallInput(Model):
    desktop: Annotated[bool, Field(description="Start with the desktop session, to see its screen.")] = False


@owner_operation(
    "service.install",
    did="installed the service",
    effect=Effect.CHANGE,
    where="terminal",
    is_derived=False,
    needs_setup=True,
    deadline_s=None,
    examples=[Example("Start it with the system.", {}, runs=False)],
)
async def service_install(ctx: Context, input: InstallInput = InstallInput()) -> Installed:
    """Install and start it, or, after an update, install and start it again. Shows what it writes."""
    plan = make_plan(ctx.services.home, ctx.services.config, with_desktop=input.desktop)
    try:
        done = await to_thread.run_sync(install, this_manager(), plan)
    except ServiceManagerFailed as error:
        raise ExecutionFailed(error.message, hint=error.hint) from error
    # The service answered.
    ctx.effect = "confirmed"
    ctx.note(change=done.change)
    return done
