"""service.status: what the system's service manager keeps."""

from collections.abc import Iterator

from anyio import to_thread

from computer_linker.registry.owner import Context, Effect, Example, Shown, Table, owner_operation
from computer_linker.service.install.keep import ServiceState, status, this_manager
from computer_linker.service.install.plan import make_plan


def _text(result: ServiceState) -> Iterator[Shown]:
    rows = [
        ("service", result.state), ("address", result.local_url), ("manager", result.manager), ("file", result.file),
        ("process", result.pid), ("restarts", result.restarts), ("detail", result.detail), ("problem", result.problem),
        ("next", None if result.up_to_date else "computer-linker service install"),
    ]  # fmt: skip
    yield Table([(name, str(value)) for name, value in rows if value is not None])


@owner_operation(
    "service.status",
    effect=Effect.OBSERVE,
    where="terminal",
    text=_text,
    exit_code=lambda result: 0 if result.installed and result.pid else 1,
    examples=[Example("Does it run?", {}, runs=False)],
)
async def service_status(ctx: Context) -> ServiceState:
    """Show whether it is installed, runs, and is what this program would install now."""
    return await to_thread.run_sync(status, this_manager(), make_plan(ctx.services.home, ctx.services.config))
