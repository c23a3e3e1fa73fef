"""service.uninstall: stop the service and remove it from the system's service manager."""

from anyio import to_thread

from computer_linker.errors import ExecutionFailed
from computer_linker.registry.owner import Context, Effect, Example, Note, owner_operation
from computer_linker.service.install.keep import Uninstalled, this_manager, uninstall
from computer_linker.service.install.plan import ServiceManagerFailed


@owner_operation(
    "service.uninstall",
    did="uninstalled the service",
    effect=Effect.CHANGE,
    where="terminal",
    needs_setup=True,
    deadline_s=None,
    text=lambda result: [Note(f"Removed {result.file}." if result.removed else "No service was installed.")],
    examples=[Example("Remove it.", {}, runs=False)],
)
async def service_uninstall(ctx: Context) -> Uninstalled:
    """Stop and remove it. Config, history, sessions and approvals stay as they are."""
    manager = this_manager()
    try:
        done = await to_thread.run_sync(uninstall, manager)
    except ServiceManagerFailed as error:
        raise ExecutionFailed(error.message, hint=error.hint) from error
    ctx.effect = "partial" if manager.file().exists() else "confirmed"
    ctx.note(removed=done.removed)
    return done
